-- What every table, view and column of a store means: run last, after schema.sql and views.sql.
-- A comment says what the value is, its unit, and when it is NULL. "NULL in Kineto traces": the format does not record it.
-- "not filled by this version": the column is reserved, its value is NULL in every trace for now.
-- kernels and memops repeat the comments of gpu_activities word for word (tests/test_schema.py holds them to it).

-- meta ----------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE meta IS 'one row a fact about the store: its schema and what created it';
COMMENT ON COLUMN meta.key IS 'schema_version, traceq_version or duckdb_version';
COMMENT ON COLUMN meta.value IS 'value of the key as text, as of the store''s creation';

-- rules ---------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE rules IS 'one row a pattern of kernel or operator names; of those that match the one of smallest priority counts; see traceq reclassify';
COMMENT ON COLUMN rules.priority IS 'order in which the rules are tried, smallest first';
COMMENT ON COLUMN rules.pattern IS 'regular expression (RE2) looked for anywhere in the name as recorded';
COMMENT ON COLUMN rules.category IS 'category that the rule gives, e.g. gemm (gpu_activities.category)';
COMMENT ON COLUMN rules.origin IS 'origin that the rule gives, e.g. cublas (gpu_activities.origin); not used of a rule for operators';
COMMENT ON COLUMN rules.decisive IS 'whether a kernel''s name wins over the operator that launched it';
COMMENT ON COLUMN rules.applies_to IS 'kernel, or op: the names that the pattern is for';
COMMENT ON COLUMN rules.note IS 'what the rule is for; NULL if it needs no note';
COMMENT ON COLUMN rules.source IS 'built-in, or user: from a file of rules, or added by hand';

-- runs ----------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE runs IS 'one row an experiment: a single trace, or one trace a rank';
COMMENT ON COLUMN runs.run_id IS 'number of the run within the store';
COMMENT ON COLUMN runs.label IS 'unique name of the run: given with --label, else from the name of the file or, for one of several ranks, of its folder';
COMMENT ON COLUMN runs.created_at IS 'when the first trace of the run was ingested, in UTC';
COMMENT ON COLUMN runs.command IS 'command that was captured, without the folders of its script; NULL if the run is no capture';
COMMENT ON COLUMN runs.mode IS 'mode of the capture, e.g. eager, default, reduce-overhead; NULL if the run is no capture';
COMMENT ON COLUMN runs.torch_version IS 'version of PyTorch that ran; NULL if the run is no capture';
COMMENT ON COLUMN runs.triton_version IS 'version of Triton beside it; NULL if the run is no capture, or there was none';
COMMENT ON COLUMN runs.gpu IS 'names of the GPUs in the first trace of the run, joined by commas; NULL if the file does not name them';
COMMENT ON COLUMN runs.step_pipelined_ns IS 'un-profiled step time in ns without synchronisation between steps, as captured or given with --step; NULL if neither';
COMMENT ON COLUMN runs.step_pipelined_low_ns IS 'lower end of the 95 % interval of step_pipelined_ns, in ns; NULL if not captured';
COMMENT ON COLUMN runs.step_pipelined_high_ns IS 'upper end of the 95 % interval of step_pipelined_ns, in ns; NULL if not captured';
COMMENT ON COLUMN runs.step_synced_ns IS 'un-profiled step time in ns with synchronisation after each step; NULL if not captured';
COMMENT ON COLUMN runs.step_synced_low_ns IS 'lower end of the 95 % interval of step_synced_ns, in ns; NULL if not captured';
COMMENT ON COLUMN runs.step_synced_high_ns IS 'upper end of the 95 % interval of step_synced_ns, in ns; NULL if not captured';
COMMENT ON COLUMN runs.peak_memory_bytes IS 'most GPU memory in bytes that was allocated while steps were timed without the profiler, and what CUDA graphs keep for their replays; NULL if not captured';
COMMENT ON COLUMN runs.details IS 'what else a capture recorded (seed, exit status, outputs, peaks, notes), as JSON; NULL if the run is no capture';

-- traces --------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE traces IS 'one row an ingested file';
COMMENT ON COLUMN traces.trace_id IS 'number of the trace within the store; the other tables refer to it';
COMMENT ON COLUMN traces.run_id IS 'run that the trace belongs to (runs.run_id)';
COMMENT ON COLUMN traces.rank IS 'rank recorded in the file, or else by its capture; NULL if neither says';
COMMENT ON COLUMN traces.world_size IS 'number of ranks recorded in the file, rank + 1 where it has the rank alone; NULL if the file does not say its rank';
COMMENT ON COLUMN traces.path IS 'path of the file as it was found at ingest; - for standard input';
COMMENT ON COLUMN traces.format IS 'kineto (a Chrome trace of torch.profiler) or nsys (an export of Nsight Systems)';
COMMENT ON COLUMN traces.sha256 IS 'SHA-256 of the file as it lies on disk (of several, of their digests and names), in hexadecimal; no two traces of a store share it';
COMMENT ON COLUMN traces.size_bytes IS 'size in bytes of the file as it lies on disk, compressed if it is';
COMMENT ON COLUMN traces.origin_ns IS 'moment on the wall clock from which all start_ns and at_ns count, in ns since 1970; NULL if the file does not record it';
COMMENT ON COLUMN traces.duration_ns IS 'from the first stored event to the latest end of a GPU activity, API call, operator, range or Python call, in ns; NULL if there is none';
COMMENT ON COLUMN traces.status IS 'complete, or salvaged: the text was cut or broken, and only its whole events are here';
COMMENT ON COLUMN traces.resolution_ns IS 'step of the recorded GPU times in ns: 1, or 1000 where all are in whole µs; NULL without GPU rows';
COMMENT ON COLUMN traces.invisible_replays IS 'graph launches that no GPU activity answers: replays not recorded; if above 0, the trace has no rows in gpu_busy and gaps';
COMMENT ON COLUMN traces.clipped_rows IS 'operators, ranges and Python calls that would outlast what they are inside of: their end counts as its end';
COMMENT ON COLUMN traces.op_disagreements IS 'GPU activities whose External id names another operator than the one open at their launch';
COMMENT ON COLUMN traces.warnings IS 'what ingest noted about the file, as a JSON list of sentences; empty list if nothing';
COMMENT ON COLUMN traces.metadata IS 'top-level keys of the file (nsys: versions, graph mode) as JSON; logs and keys that may name a person, machine or path are left out';

-- captures ------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE captures IS 'one row a record that traceq capture wrote: one process of a run, with its trace or without';
COMMENT ON COLUMN captures.run_id IS 'run that the row belongs to (runs.run_id)';
COMMENT ON COLUMN captures.rank IS 'rank that recorded it; NULL if it is not one of several';
COMMENT ON COLUMN captures.world_size IS 'number of ranks of the run; NULL if it is not one of several';
COMMENT ON COLUMN captures.path IS 'path of the record as it was found at ingest';
COMMENT ON COLUMN captures.sha256 IS 'SHA-256 of the record as it lies on disk, in hexadecimal; no two captures of a store share it';
COMMENT ON COLUMN captures.size_bytes IS 'size in bytes of the record as it lies on disk';
COMMENT ON COLUMN captures.has_facts IS 'whether it was recorded what torch.compile did: then no row in graph_breaks means that there was none';

-- timings -------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE timings IS 'one row a measurement of steps without the profiler, as traceq capture made it';
COMMENT ON COLUMN timings.run_id IS 'run that the row belongs to (runs.run_id)';
COMMENT ON COLUMN timings.rank IS 'rank that recorded it; NULL if it is not one of several';
COMMENT ON COLUMN timings.kind IS 'pipelined (nothing waits between the steps of a block) or synced (the host waits for the GPU after each step)';
COMMENT ON COLUMN timings.block IS 'number of the measurement among those of its kind, in order of time';
COMMENT ON COLUMN timings.steps IS 'steps that were timed together: many in a pipelined block, 1 where each step is timed alone';
COMMENT ON COLUMN timings.ns IS 'time of all steps of the block in ns; over steps it is the time of one';

-- graph_breaks --------------------------------------------------------------------------------------------------------

COMMENT ON TABLE graph_breaks IS 'one row a reason and place at which torch.compile had to split a graph';
COMMENT ON COLUMN graph_breaks.run_id IS 'run that the row belongs to (runs.run_id)';
COMMENT ON COLUMN graph_breaks.rank IS 'rank that recorded it; NULL if it is not one of several';
COMMENT ON COLUMN graph_breaks.reason IS 'why the graph breaks, in the words of TorchDynamo, its first line';
COMMENT ON COLUMN graph_breaks.file IS 'file of the users line, from the working folder where it lies in it, else without the folders above; NULL if not known';
COMMENT ON COLUMN graph_breaks.line IS 'line of the users code that breaks the graph; NULL if not known';
COMMENT ON COLUMN graph_breaks.function IS 'function of that line; NULL if not known';
COMMENT ON COLUMN graph_breaks.count IS 'graphs that broke there for that reason, over all compilations';

-- recompiles ----------------------------------------------------------------------------------------------------------

COMMENT ON TABLE recompiles IS 'one row a guard whose failure made torch.compile compile a function again';
COMMENT ON COLUMN recompiles.run_id IS 'run that the row belongs to (runs.run_id)';
COMMENT ON COLUMN recompiles.rank IS 'rank that recorded it; NULL if it is not one of several';
COMMENT ON COLUMN recompiles.function IS 'function that was compiled again; NULL if not known';
COMMENT ON COLUMN recompiles.file IS 'file of the function, as graph_breaks.file; NULL if not known';
COMMENT ON COLUMN recompiles.line IS 'line on which the function begins; NULL if not known';
COMMENT ON COLUMN recompiles.guard IS 'the guard that failed first, as TorchDynamo words it; NULL if not known';
COMMENT ON COLUMN recompiles.count IS 'compilations that this failure caused';

-- compile_phases ------------------------------------------------------------------------------------------------------

COMMENT ON TABLE compile_phases IS 'one row a phase of compiling, over all compilations of the process; the phases do not overlap, so their sum is the whole';
COMMENT ON COLUMN compile_phases.run_id IS 'run that the row belongs to (runs.run_id)';
COMMENT ON COLUMN compile_phases.rank IS 'rank that recorded it; NULL if it is not one of several';
COMMENT ON COLUMN compile_phases.phase IS 'part of the compiler, e.g. dynamo, aot_autograd, inductor, triton; docs/queries/compile_time.md explains each';
COMMENT ON COLUMN compile_phases.ns IS 'time spent in it in ns, without the phases that ran inside it';
COMMENT ON COLUMN compile_phases.count IS 'how often it ran';

-- kernel_sources ------------------------------------------------------------------------------------------------------

COMMENT ON TABLE kernel_sources IS 'one row a kernel that torch.compile generated, with its source';
COMMENT ON COLUMN kernel_sources.run_id IS 'run that the row belongs to (runs.run_id)';
COMMENT ON COLUMN kernel_sources.rank IS 'rank that recorded it; NULL if it is not one of several';
COMMENT ON COLUMN kernel_sources.kernel IS 'name of the kernel as a trace shows it (gpu_activities.name, ops.name)';
COMMENT ON COLUMN kernel_sources.hash IS 'key of the generated file, as traces name it (ops.kernel_hash); NULL if not known';
COMMENT ON COLUMN kernel_sources.language IS 'triton, or cpp for kernels of the CPU';
COMMENT ON COLUMN kernel_sources.source IS 'the generated source, whole';
COMMENT ON COLUMN kernel_sources.num_warps IS 'warps a block (Triton), of the configuration chosen; NULL if not known, or no Triton kernel';
COMMENT ON COLUMN kernel_sources.num_stages IS 'stages of the software pipeline (Triton); NULL if not known, or no Triton kernel';
COMMENT ON COLUMN kernel_sources.registers IS 'registers per thread as compiled; NULL if not known, or no Triton kernel';
COMMENT ON COLUMN kernel_sources.spills IS 'registers spilled to memory per thread; NULL if not known, or no Triton kernel';
COMMENT ON COLUMN kernel_sources.shared_bytes IS 'shared memory per block in bytes; NULL if not known, or no Triton kernel';
COMMENT ON COLUMN kernel_sources.ops IS 'operators that the kernel computes, as a JSON list of their names; NULL if not known';

-- event_counts --------------------------------------------------------------------------------------------------------

COMMENT ON TABLE event_counts IS 'one row what became of the events of one phase and category (of one table of an nsys export); kept + skipped + lost, summed, is all events of the file';
COMMENT ON COLUMN event_counts.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN event_counts.ph IS 'phase of the events: X complete, i instant, M metadata, C counter, s and f flow; in nsys exports by what the table holds; NULL if missing or unreadable';
COMMENT ON COLUMN event_counts.category IS 'category (cat) as recorded, in nsys exports the table; NULL if the events have none';
COMMENT ON COLUMN event_counts.stored_in IS 'table that the events go to; NULL if skipped or unreadable';
COMMENT ON COLUMN event_counts.kept IS 'events that became rows of stored_in; for processes and threads, events that names were taken from';
COMMENT ON COLUMN event_counts.skipped IS 'events left out on purpose';
COMMENT ON COLUMN event_counts.lost IS 'events left out because they are unreadable or have no usable time';
COMMENT ON COLUMN event_counts.reason IS 'why events were skipped or lost; NULL if all were kept';

-- devices -------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE devices IS 'one row a GPU with activity in the trace; without any GPU activity, one row a GPU that the file lists';
COMMENT ON COLUMN devices.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN devices.device IS 'number of the GPU in the trace: as the file numbers it (nsys: the machine); counted from 0 where ranks of several files were merged';
COMMENT ON COLUMN devices.name IS 'model of the GPU; NULL if the file does not list its devices';
COMMENT ON COLUMN devices.uuid IS 'UUID of the GPU; NULL in Kineto traces';
COMMENT ON COLUMN devices.sm_count IS 'number of streaming multiprocessors (compute units on AMD); NULL if the file does not list its devices';
COMMENT ON COLUMN devices.memory_bytes IS 'total memory of the GPU in bytes; NULL if the file does not say';
COMMENT ON COLUMN devices.compute_capability IS 'CUDA compute capability, e.g. 9.0; NULL if the file does not say';
COMMENT ON COLUMN devices.peak_bytes_per_s IS 'highest memory bandwidth in bytes a second: as measured, else as recorded (nsys), else by the data sheet; NULL for an unknown model';
COMMENT ON COLUMN devices.peak_flops IS 'FLOP/s as measured, else by the data sheet, dense, with tensor cores, as JSON by number format, e.g. bfloat16; NULL for an unknown model';
COMMENT ON COLUMN devices.peak_source IS 'where the two peaks are from: data sheet (in nsys exports the driver), or measured (traceq capture); NULL without a peak';

-- device_ordinals -----------------------------------------------------------------------------------------------------

COMMENT ON TABLE device_ordinals IS 'one row a process and GPU that it used, with the number that the process gives the GPU';
COMMENT ON COLUMN device_ordinals.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN device_ordinals.pid IS 'process that launched work on the GPU (gpu_activities.pid)';
COMMENT ON COLUMN device_ordinals.ordinal IS 'number of the GPU in that process; the same as device in Kineto traces';
COMMENT ON COLUMN device_ordinals.device IS 'number of the GPU in the trace (devices.device)';

-- processes -----------------------------------------------------------------------------------------------------------

COMMENT ON TABLE processes IS 'one row a process that has API calls, operators, ranges, Python calls or, in nsys exports, GPU activities';
COMMENT ON COLUMN processes.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN processes.pid IS 'process as recorded, as text since merged traces write text ids; in nsys exports the whole globalPid; torch.profiler also writes Spans, Traces and an empty one';
COMMENT ON COLUMN processes.os_pid IS 'pid as a number, in nsys exports the one that the system gave; NULL if it is none';
COMMENT ON COLUMN processes.rank IS 'rank of the process; not filled by this version';
COMMENT ON COLUMN processes.name IS 'name of the process as recorded, usually its program, without the folder it lies in; NULL if not recorded';
COMMENT ON COLUMN processes.labels IS 'labels of the process as recorded, e.g. CPU; NULL if not recorded';

-- threads -------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE threads IS 'one row a named thread or, in Kineto traces, a named GPU stream';
COMMENT ON COLUMN threads.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN threads.pid IS 'process as recorded, as text; for a stream in a Kineto trace, its device; empty if not recorded';
COMMENT ON COLUMN threads.tid IS 'thread as recorded, as text; for a stream in a Kineto trace, the stream; empty if not recorded';
COMMENT ON COLUMN threads.name IS 'name as recorded, several joined by commas; NULL if the record has none';

-- gpu_activities ------------------------------------------------------------------------------------------------------

COMMENT ON TABLE gpu_activities IS 'one row a kernel, memcpy, memset or whole-graph replay on a GPU';
COMMENT ON COLUMN gpu_activities.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN gpu_activities.activity_id IS 'number of the activity within the trace, in order of start';
COMMENT ON COLUMN gpu_activities.kind IS 'kernel, memcpy, memset, or graph (replay of a whole graph; nsys only)';
COMMENT ON COLUMN gpu_activities.name IS 'full name as recorded; for a memcpy, memset or graph in nsys exports made of its kind; [name ID] where an export lacks the name; NULL if it has none';
COMMENT ON COLUMN gpu_activities.short_name IS 'name of the kernel without return type, namespaces, template and call arguments; for all else the name';
COMMENT ON COLUMN gpu_activities.mangled_name IS 'name of the kernel before demangling; NULL in Kineto traces, or if not recorded';
COMMENT ON COLUMN gpu_activities.category IS 'what the kernel computes, e.g. gemm: by a decisive name, else the operator, else a weaker name; other if none knows; NULL unless kind is kernel';
COMMENT ON COLUMN gpu_activities.category_by_name IS 'what the kernel computes by the first of the rules that its name matches; other if none; NULL unless kind is kernel';
COMMENT ON COLUMN gpu_activities.category_source IS 'what gave category: name, op (the operator at the launch) or none (category is other); NULL unless kind is kernel';
COMMENT ON COLUMN gpu_activities.origin IS 'who made the kernel, e.g. cublas, aten, inductor, by the first rule that its name matches; unknown if none; NULL unless kind is kernel';
COMMENT ON COLUMN gpu_activities.phase IS 'what it served: optimizer, data (loading), backward, forward or, without an operator, other; see docs/meaning.md';
COMMENT ON COLUMN gpu_activities.pid IS 'process that launched it: as recorded (nsys), else that of the API calls if all share one, else that of launch_id; NULL if none is known';
COMMENT ON COLUMN gpu_activities.device IS 'GPU that it ran on (devices.device)';
COMMENT ON COLUMN gpu_activities.context IS 'CUDA context; NULL if not recorded, as on AMD';
COMMENT ON COLUMN gpu_activities.green_context IS 'CUDA green context; NULL in Kineto traces';
COMMENT ON COLUMN gpu_activities.stream IS 'stream that it ran on; NULL if not recorded';
COMMENT ON COLUMN gpu_activities.start_ns IS 'start in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN gpu_activities.dur_ns IS 'length in ns; 0 is counted as an activity but is not busy';
COMMENT ON COLUMN gpu_activities.correlation_id IS 'id that it shares with the API call that launched it; NULL if not recorded; 0 or NULL links to none';
COMMENT ON COLUMN gpu_activities.external_id IS 'External id as recorded: external_id of the operator, or the correlation id again in old files; NULL if not recorded';
COMMENT ON COLUMN gpu_activities.launch_id IS 'API call that launched it (api_calls.call_id): the only one of its process (nsys), file or merged rank with its correlation_id; NULL if none or several';
COMMENT ON COLUMN gpu_activities.op_id IS 'innermost operator open at the launch (ops.op_id), of a replay that around the graph launch; NULL if none was, or no launch is known';
COMMENT ON COLUMN gpu_activities.step IS 'step in which its launch call starts (steps.step); NULL if that is in none or launch_id is NULL';
COMMENT ON COLUMN gpu_activities.graph_id IS 'CUDA graph that it is part of; NULL if it is in none or not recorded (Kineto before torch 2.12)';
COMMENT ON COLUMN gpu_activities.graph_exec_id IS 'executable graph that it is part of; NULL in Kineto traces';
COMMENT ON COLUMN gpu_activities.graph_node_id IS 'node of the graph that it is; NULL if it is in none or not recorded (Kineto before torch 2.12)';
COMMENT ON COLUMN gpu_activities.grid_x IS 'grid size in x, in blocks; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN gpu_activities.grid_y IS 'grid size in y, in blocks; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN gpu_activities.grid_z IS 'grid size in z, in blocks; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN gpu_activities.block_x IS 'block size in x, in threads; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN gpu_activities.block_y IS 'block size in y, in threads; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN gpu_activities.block_z IS 'block size in z, in threads; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN gpu_activities.registers IS 'registers per thread; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN gpu_activities.shared_bytes IS 'shared memory per block in bytes, static and dynamic together; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN gpu_activities.static_shared_bytes IS 'static shared memory per block in bytes; NULL in Kineto traces';
COMMENT ON COLUMN gpu_activities.dynamic_shared_bytes IS 'dynamic shared memory per block in bytes; NULL in Kineto traces';
COMMENT ON COLUMN gpu_activities.occupancy_pct IS 'occupancy in percent as the profiler estimates it, 0 for tiny grids and, in Kineto, above 48 KiB of shared memory; NULL for copies, or if not recorded';
COMMENT ON COLUMN gpu_activities.bytes IS 'bytes copied or set; NULL for a kernel, or if not recorded';
COMMENT ON COLUMN gpu_activities.copy_kind IS 'direction of a memcpy: HtoD, DtoH, DtoD, HtoH, PtoP, or with A for an array; NULL for all else, or if not recorded';
COMMENT ON COLUMN gpu_activities.src_kind IS 'memory that a memcpy reads, e.g. Pageable, Pinned, Device; NULL for all else, or if not recorded';
COMMENT ON COLUMN gpu_activities.dst_kind IS 'memory that a memcpy or memset writes, e.g. Pageable, Pinned, Device; NULL for a kernel, or if not recorded';
COMMENT ON COLUMN gpu_activities.src_device IS 'GPU that a peer-to-peer memcpy reads from; NULL for all else';
COMMENT ON COLUMN gpu_activities.dst_device IS 'GPU that a peer-to-peer memcpy writes to; NULL for all else';
COMMENT ON COLUMN gpu_activities.details IS 'recorded fields that have no column, as JSON; NULL if there are none';

-- api_calls -----------------------------------------------------------------------------------------------------------

COMMENT ON TABLE api_calls IS 'one row a CUDA or HIP call, of the runtime or the driver';
COMMENT ON COLUMN api_calls.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN api_calls.call_id IS 'number of the call within the trace, in order of start';
COMMENT ON COLUMN api_calls.name IS 'name of the call without a suffix for its version or stream (_v7000, _ptsz, _ptds); NULL if it has none';
COMMENT ON COLUMN api_calls.recorded_name IS 'name of the call as recorded; NULL if it has none';
COMMENT ON COLUMN api_calls.api IS 'runtime or driver';
COMMENT ON COLUMN api_calls.pid IS 'process as recorded, as text since merged traces write text ids; NULL if not recorded';
COMMENT ON COLUMN api_calls.tid IS 'thread as recorded, as text since merged traces write text ids; NULL if not recorded';
COMMENT ON COLUMN api_calls.start_ns IS 'start in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN api_calls.dur_ns IS 'length in ns';
COMMENT ON COLUMN api_calls.correlation_id IS 'id that it shares with the GPU activities that it launches; NULL if not recorded; 0 or NULL links to none';
COMMENT ON COLUMN api_calls.external_id IS 'External id as recorded: external_id of the operator around it, or a correlation id in old files; NULL if not recorded';
COMMENT ON COLUMN api_calls.result IS 'code that the call returned; NULL in Kineto traces';
COMMENT ON COLUMN api_calls.op_id IS 'innermost operator open at its start on its thread (ops.op_id); NULL if none was';
COMMENT ON COLUMN api_calls.range_id IS 'innermost range open at its start on its thread (ranges.range_id); NULL if none was';
COMMENT ON COLUMN api_calls.python_call_id IS 'innermost Python function open at its start on its thread (python_calls.call_id); NULL if none was, or without stacks';
COMMENT ON COLUMN api_calls.step IS 'step in which it starts (steps.step); NULL if in none';
COMMENT ON COLUMN api_calls.role IS 'what the call does, by its name: launch, graph_launch, memcpy, memset, sync, wait, alloc, load or other';
COMMENT ON COLUMN api_calls.details IS 'recorded fields that have no column, as JSON; NULL if there are none';

-- ops -----------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE ops IS 'one row a CPU operator; in nsys exports, of a program run under emit_nvtx';
COMMENT ON COLUMN ops.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN ops.op_id IS 'number of the operator within the trace, in order of start';
COMMENT ON COLUMN ops.name IS 'name as recorded, e.g. aten::mm, without the ids and shapes that emit_nvtx adds to it; NULL if it has none';
COMMENT ON COLUMN ops.pid IS 'process as recorded, as text since merged traces write text ids; NULL if not recorded';
COMMENT ON COLUMN ops.tid IS 'thread as recorded, as text since merged traces write text ids; NULL if not recorded';
COMMENT ON COLUMN ops.start_ns IS 'start in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN ops.dur_ns IS 'length in ns';
COMMENT ON COLUMN ops.self_ns IS 'dur_ns less that of the operators directly inside, in ns; where clocks make them cross, a child ends with its parent';
COMMENT ON COLUMN ops.parent_id IS 'operator directly around it (ops.op_id); NULL if none is';
COMMENT ON COLUMN ops.depth IS 'number of operators around it';
COMMENT ON COLUMN ops.external_id IS 'External id as recorded: the number that torch.profiler gives the operator, or op_id of emit_nvtx; NULL if not recorded';
COMMENT ON COLUMN ops.sequence IS 'autograd sequence number, which a forward operator shares with its backward ones; NULL if not recorded';
COMMENT ON COLUMN ops.forward_thread IS 'for a backward operator, the profiler''s number of the forward thread (not a tid); else 0; NULL if not recorded';
COMMENT ON COLUMN ops.is_backward IS 'whether phase is backward';
COMMENT ON COLUMN ops.forward_op_id IS 'of an operator in a backward node: the forward operator that made the node (ops.op_id); NULL if not known';
COMMENT ON COLUMN ops.phase IS 'what it serves: optimizer, data (loading), backward or forward; see docs/meaning.md';
COMMENT ON COLUMN ops.step IS 'step in which it starts (steps.step); NULL if in none';
COMMENT ON COLUMN ops.input_dims IS 'shapes of the inputs, as a JSON list; NULL unless recorded with record_shapes';
COMMENT ON COLUMN ops.input_types IS 'element types of the inputs, as a JSON list; NULL unless recorded with record_shapes';
COMMENT ON COLUMN ops.input_strides IS 'strides of the inputs in elements, as a JSON list; NULL unless recorded with record_shapes, by a torch that records them';
COMMENT ON COLUMN ops.concrete_inputs IS 'values of scalar inputs as text, empty for others, as a JSON list; NULL unless recorded with record_shapes, by a torch that does so';
COMMENT ON COLUMN ops.module IS 'path of the modules around it, e.g. GPT_0/Linear_1: nn.Module frames, else as recorded, else the user''s ranges; in backward that of the forward operator';
COMMENT ON COLUMN ops.kernel_file IS 'source file of the Triton kernel that the operator launches, as recorded; NULL for all but Inductor''s kernels';
COMMENT ON COLUMN ops.kernel_hash IS 'hash of the Triton kernel that the operator launches, as recorded; NULL for all but Inductor''s kernels';
COMMENT ON COLUMN ops.details IS 'recorded fields that have no column, as JSON; NULL if there are none';

-- ranges --------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE ranges IS 'one row a named range or instant on the host: record_function, ProfilerStep, NVTX';
COMMENT ON COLUMN ranges.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN ranges.range_id IS 'number of the range within the trace, in order of start';
COMMENT ON COLUMN ranges.kind IS 'record_function, step (ProfilerStep#N), window (the whole recording), mark (an instant), or push_pop, start_end (NVTX, nsys only)';
COMMENT ON COLUMN ranges.name IS 'name as recorded, without the ids and shapes that emit_nvtx adds to it; NULL if it has none';
COMMENT ON COLUMN ranges.domain IS 'NVTX domain; NULL in Kineto traces and for the default domain';
COMMENT ON COLUMN ranges.category IS 'NVTX category; NULL in Kineto traces, or if it has none';
COMMENT ON COLUMN ranges.payload IS 'NVTX payload as text; NULL in Kineto traces, or if it has none';
COMMENT ON COLUMN ranges.pid IS 'process as recorded, as text since merged traces write text ids; NULL if not recorded';
COMMENT ON COLUMN ranges.tid IS 'thread as recorded, as text since merged traces write text ids; NULL if not recorded';
COMMENT ON COLUMN ranges.end_tid IS 'thread on which a start_end range ends, as text; NULL in Kineto traces, or if it is the one on which it starts';
COMMENT ON COLUMN ranges.start_ns IS 'start in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN ranges.dur_ns IS 'length in ns; NULL for a mark, or a range that was open when the recording ended';
COMMENT ON COLUMN ranges.external_id IS 'External id as recorded: the number that torch.profiler gives the range, or op_id of emit_nvtx; NULL if not recorded';
COMMENT ON COLUMN ranges.parent_id IS 'range directly around it (ranges.range_id); NULL if none is';
COMMENT ON COLUMN ranges.depth IS 'number of ranges around it; NULL for marks and the profiler''s window';
COMMENT ON COLUMN ranges.details IS 'recorded fields that have no column, as JSON; NULL if there are none';

-- python_calls --------------------------------------------------------------------------------------------------------

COMMENT ON TABLE python_calls IS 'one row a call of a Python function; none unless recorded with_stack';
COMMENT ON COLUMN python_calls.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN python_calls.call_id IS 'number of the Python call within the trace, in order of start; not api_calls.call_id';
COMMENT ON COLUMN python_calls.name IS 'file, line and function, or the built-in, as recorded; NULL if it has none';
COMMENT ON COLUMN python_calls.pid IS 'process as recorded, as text since merged traces write text ids; NULL if not recorded';
COMMENT ON COLUMN python_calls.tid IS 'thread as recorded, as text since merged traces write text ids; NULL if not recorded';
COMMENT ON COLUMN python_calls.start_ns IS 'start in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN python_calls.dur_ns IS 'length in ns';
COMMENT ON COLUMN python_calls.self_ns IS 'dur_ns less that of the Python calls directly inside, in ns; where clocks make them cross, a child ends with its parent';
COMMENT ON COLUMN python_calls.parent_id IS 'Python call directly around it (python_calls.call_id); NULL if none is';
COMMENT ON COLUMN python_calls.depth IS 'number of Python calls around it';
COMMENT ON COLUMN python_calls.python_id IS 'Python id as recorded: the number that torch.profiler gives the call; NULL if not recorded';
COMMENT ON COLUMN python_calls.python_parent_id IS 'python_id of the calling function; NULL for the outermost call, or if not recorded';
COMMENT ON COLUMN python_calls.module_id IS 'number that torch.profiler gives the nn.Module that is called (Python module id); NULL for other calls';
COMMENT ON COLUMN python_calls.details IS 'recorded fields that have no column, as JSON; NULL if there are none';

-- steps ---------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE steps IS 'one row an iteration: a range ProfilerStep#N, or one that --step-range names; GPU work belongs to the step that launched it';
COMMENT ON COLUMN steps.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN steps.step IS 'N of ProfilerStep#N, else the place of the range among those of its process, from 0';
COMMENT ON COLUMN steps.name IS 'name of the range';
COMMENT ON COLUMN steps.pid IS 'process whose launches it takes: that of the range, or the only one with API calls if that has no steps; NULL if not recorded';
COMMENT ON COLUMN steps.start_ns IS 'start of the range on the host in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN steps.dur_ns IS 'length of the range on the host, in ns';
COMMENT ON COLUMN steps.gpu_start_ns IS 'start of the first GPU activity that it launched, on any device, in ns as start_ns; NULL if it launched none';
COMMENT ON COLUMN steps.gpu_end_ns IS 'latest end of a GPU activity that it launched, on any device, in ns as start_ns; NULL if it launched none';
COMMENT ON COLUMN steps.period_ns IS 'gpu_start_ns of the next step less that of this one, in ns; NULL for the last, before a pause (numbers that do not follow), or if either has no GPU work';
COMMENT ON COLUMN steps.gpu_busy_ns IS 'union of the GPU activities that it launched in ns, summed over devices; NULL if it launched none';
COMMENT ON COLUMN steps.kernels IS 'number of kernels that it launched, those of graphs included';
COMMENT ON COLUMN steps.kernel_ns IS 'sum of the durations of its kernels in ns, which can exceed gpu_busy_ns; NULL if it launched no GPU work';
COMMENT ON COLUMN steps.memop_ns IS 'sum of the durations of its memcpys and memsets in ns; NULL if it launched no GPU work';
COMMENT ON COLUMN steps.launches IS 'number of kernel and graph launch calls that start in it';
COMMENT ON COLUMN steps.flags IS 'why medians leave it out: no_gpu, compiles (Dynamo compiles in it), partial (a launch call has no GPU activity); empty if none';

-- gaps ----------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE gaps IS 'one row an idle interval of a device between two GPU activities; none for a trace with invisible replays';
COMMENT ON COLUMN gaps.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN gaps.device IS 'GPU that is idle (devices.device)';
COMMENT ON COLUMN gaps.gap_id IS 'number of the gap within the trace, in order of device and start';
COMMENT ON COLUMN gaps.start_ns IS 'start in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN gaps.dur_ns IS 'length in ns, above 0';
COMMENT ON COLUMN gaps.before_id IS 'activity that ends where the gap starts (gpu_activities.activity_id), the largest id of several';
COMMENT ON COLUMN gaps.after_id IS 'activity of positive length that starts where the gap ends, of several the first by end and id; NULL for a gap after the last work';
COMMENT ON COLUMN gaps.step IS 'step of the activity after_id (steps.step); NULL if it is in none';
COMMENT ON COLUMN gaps.launch_state IS 'launch of after_id, seen from the start of the gap: host (not begun), launching (running), queued (returned), unknown (no launch)';
COMMENT ON COLUMN gaps.host_ns IS 'part of the gap before the launch of after_id starts, in ns: launch start - gap start, kept within 0 and dur_ns; NULL if launch_state is unknown';
COMMENT ON COLUMN gaps.after_launch_ns IS 'rest of the gap, in ns: dur_ns - host_ns; NULL if launch_state is unknown';

-- gap_parts ------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE gap_parts IS 'one row why a gap of a device was there: two for a late host, else one; the ns of a gap''s parts sum to its dur_ns';
COMMENT ON COLUMN gap_parts.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN gap_parts.gap_id IS 'the gap (gaps.gap_id)';
COMMENT ON COLUMN gap_parts.part IS 'host (until the launch began), launch (from then on), or whole';
COMMENT ON COLUMN gap_parts.cause IS 'why, e.g. sync, dataloader, cpu_ops, python, launch_latency, queue_latency, in_graph, dependency; docs/meaning.md explains each';
COMMENT ON COLUMN gap_parts.ns IS 'length of the part in ns, above 0';
COMMENT ON COLUMN gap_parts.evidence IS 'what shows it: the name of the call, operator, range or Python function; NULL where the cause says all';
COMMENT ON COLUMN gap_parts.call_id IS 'API call that the host or the GPU waited for: the synchronising one for sync, else the launch (api_calls.call_id); NULL without a launch';
COMMENT ON COLUMN gap_parts.op_id IS 'operator that was being dispatched: around the launch, or around the call that waited (ops.op_id); NULL if none was';

-- stream_gaps -----------------------------------------------------------------------------------------------------------

COMMENT ON TABLE stream_gaps IS 'one row an idle interval of a stream between two of its GPU activities; none for a trace with invisible replays';
COMMENT ON COLUMN stream_gaps.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN stream_gaps.device IS 'GPU of the stream (devices.device)';
COMMENT ON COLUMN stream_gaps.stream IS 'stream that is idle; NULL if not recorded';
COMMENT ON COLUMN stream_gaps.gap_id IS 'number of the gap within the trace, in order of device, stream and start';
COMMENT ON COLUMN stream_gaps.start_ns IS 'start in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN stream_gaps.dur_ns IS 'length in ns, above 0';
COMMENT ON COLUMN stream_gaps.before_id IS 'activity that ends where the gap starts (gpu_activities.activity_id), the largest id of several';
COMMENT ON COLUMN stream_gaps.after_id IS 'activity of positive length that starts where the gap ends, of several the first by end and id; NULL for a gap after the last work';
COMMENT ON COLUMN stream_gaps.step IS 'step of the activity after_id (steps.step); NULL if it is in none';
COMMENT ON COLUMN stream_gaps.launch_state IS 'launch of after_id, seen from the start of the gap: host (not begun), launching (running), queued (returned), unknown (no launch)';
COMMENT ON COLUMN stream_gaps.host_ns IS 'part of the gap before the launch of after_id starts, in ns: launch start - gap start, kept within 0 and dur_ns; NULL if launch_state is unknown';
COMMENT ON COLUMN stream_gaps.after_launch_ns IS 'rest of the gap, in ns: dur_ns - host_ns; NULL if launch_state is unknown';

-- stream_gap_parts ------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE stream_gap_parts IS 'one row why a gap of a stream was there: two for a late host, else one; the ns of a gap''s parts sum to its dur_ns';
COMMENT ON COLUMN stream_gap_parts.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN stream_gap_parts.gap_id IS 'the gap (stream_gaps.gap_id)';
COMMENT ON COLUMN stream_gap_parts.part IS 'host (until the launch began), launch (from then on), or whole';
COMMENT ON COLUMN stream_gap_parts.cause IS 'why, e.g. sync, dataloader, cpu_ops, python, launch_latency, queue_latency, in_graph, dependency; docs/meaning.md explains each';
COMMENT ON COLUMN stream_gap_parts.ns IS 'length of the part in ns, above 0';
COMMENT ON COLUMN stream_gap_parts.evidence IS 'what shows it: the name of the call, operator, range or Python function; NULL where the cause says all';
COMMENT ON COLUMN stream_gap_parts.call_id IS 'API call that the host or the GPU waited for: the synchronising one for sync, else the launch (api_calls.call_id); NULL without a launch';
COMMENT ON COLUMN stream_gap_parts.op_id IS 'operator that was being dispatched: around the launch, or around the call that waited (ops.op_id); NULL if none was';

-- gpu_busy ------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE gpu_busy IS 'one row a busy interval of a device: the union of its GPU activities; none for a trace with invisible replays';
COMMENT ON COLUMN gpu_busy.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN gpu_busy.device IS 'GPU that is busy (devices.device)';
COMMENT ON COLUMN gpu_busy.start_ns IS 'start in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN gpu_busy.dur_ns IS 'length in ns, above 0';

-- collectives ---------------------------------------------------------------------------------------------------------

COMMENT ON TABLE collectives IS 'one row the message of a communication kernel; none if the kernels do not record it';
COMMENT ON COLUMN collectives.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN collectives.activity_id IS 'kernel that carries the message (gpu_activities.activity_id)';
COMMENT ON COLUMN collectives.op_id IS 'operator that asked for the collective (ops.op_id); NULL if not known';
COMMENT ON COLUMN collectives.name IS 'collective as recorded, e.g. allreduce';
COMMENT ON COLUMN collectives.dtype IS 'element type as recorded, e.g. BFloat16; NULL if not recorded';
COMMENT ON COLUMN collectives.in_elems IS 'number of elements that go in; NULL if not recorded';
COMMENT ON COLUMN collectives.out_elems IS 'number of elements that come out; NULL if not recorded';
COMMENT ON COLUMN collectives.bytes IS 'size in bytes of the larger of in_elems and out_elems; NULL if neither is recorded or dtype has no known size';
COMMENT ON COLUMN collectives.group_name IS 'process group as recorded (Process Group Name); NULL if not recorded';
COMMENT ON COLUMN collectives.group_size IS 'number of ranks in the process group; NULL if not recorded';
COMMENT ON COLUMN collectives.ranks IS 'ranks of the process group as recorded text, e.g. [0, 1]; NULL if not recorded';
COMMENT ON COLUMN collectives.sequence IS 'sequence number of the collective in its process group (Seq); NULL if not recorded';
COMMENT ON COLUMN collectives.peer IS 'rank that a point-to-point message goes to (Dst Rank); NULL if not recorded';

-- memory_events -------------------------------------------------------------------------------------------------------

COMMENT ON TABLE memory_events IS 'one row an event of a PyTorch allocator (Kineto, with profile_memory) or an allocation of CUDA (nsys, with --cuda-memory-usage)';
COMMENT ON COLUMN memory_events.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN memory_events.name IS '[memory] (an allocation or a release) or [OutOfMemory]; in nsys exports the call or variable as recorded, else alloc or free';
COMMENT ON COLUMN memory_events.at_ns IS 'moment in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN memory_events.pid IS 'process as recorded, as text since merged traces write text ids; NULL if not recorded';
COMMENT ON COLUMN memory_events.tid IS 'thread as recorded, as text since merged traces write text ids; NULL if not recorded';
COMMENT ON COLUMN memory_events.op_id IS 'innermost operator open at at_ns on its thread (ops.op_id); NULL if none was';
COMMENT ON COLUMN memory_events.device IS 'device as the process numbers it (Device Id), in nsys exports devices.device; NULL for the host''s memory in Kineto traces';
COMMENT ON COLUMN memory_events.device_type IS 'type of the device as PyTorch numbers it: 0 CPU, 1 CUDA, 6 HIP; NULL if not recorded';
COMMENT ON COLUMN memory_events.bytes IS 'size in bytes, negative for a release; NULL if not recorded';
COMMENT ON COLUMN memory_events.allocated_bytes IS 'bytes of the device in use after the event (Total Allocated); NULL if not recorded';
COMMENT ON COLUMN memory_events.reserved_bytes IS 'bytes of the device that the allocator holds after the event (Total Reserved); NULL if not recorded';
COMMENT ON COLUMN memory_events.addr IS 'address as recorded, as text; NULL if not recorded';
COMMENT ON COLUMN memory_events.details IS 'recorded fields that have no column, as JSON; NULL if there are none';

-- syncs ---------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE syncs IS 'one row a synchronisation as CUPTI records it; in Kineto traces none unless recorded with enable_cuda_sync_events';
COMMENT ON COLUMN syncs.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN syncs.type IS 'kind of synchronisation, e.g. Stream Sync, Context Sync, Event Sync, Stream Wait Event; in nsys exports by the name of its API call';
COMMENT ON COLUMN syncs.pid IS 'process that synchronises, as recorded; NULL in Kineto traces';
COMMENT ON COLUMN syncs.device IS 'GPU concerned; NULL if not recorded';
COMMENT ON COLUMN syncs.context IS 'CUDA context concerned; NULL if not recorded';
COMMENT ON COLUMN syncs.stream IS 'stream that waits, or that is waited for in a Stream Sync; NULL if none or not recorded';
COMMENT ON COLUMN syncs.start_ns IS 'start in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN syncs.dur_ns IS 'length in ns';
COMMENT ON COLUMN syncs.correlation_id IS 'id that it shares with its API call (api_calls.correlation_id); NULL if not recorded';
COMMENT ON COLUMN syncs.external_id IS 'External id as recorded: external_id of the operator around the call; NULL if not recorded';
COMMENT ON COLUMN syncs.wait_stream IS 'stream whose event is waited for (wait_on_stream); NULL if none or not recorded';
COMMENT ON COLUMN syncs.details IS 'recorded fields that have no column, as JSON; NULL if there are none';

-- overheads -----------------------------------------------------------------------------------------------------------

COMMENT ON TABLE overheads IS 'one row a stretch of time that the profiler or lazy loading took';
COMMENT ON COLUMN overheads.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN overheads.type IS 'what took the time, as recorded, e.g. Buffer Flush, Lazy Function Loading';
COMMENT ON COLUMN overheads.pid IS 'process as recorded, as text; often -1 in Kineto traces; NULL if not recorded';
COMMENT ON COLUMN overheads.tid IS 'thread as recorded, as text; often 0 in Kineto traces; NULL if not recorded';
COMMENT ON COLUMN overheads.start_ns IS 'start in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN overheads.dur_ns IS 'length in ns';
COMMENT ON COLUMN overheads.details IS 'recorded fields that have no column, as JSON; NULL if there are none';

-- os_calls ------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE os_calls IS 'one row a call of the operating system''s libraries, e.g. a wait; none in Kineto traces, or unless recorded with --trace=osrt';
COMMENT ON COLUMN os_calls.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN os_calls.name IS 'name of the function, e.g. poll, pthread_cond_wait';
COMMENT ON COLUMN os_calls.pid IS 'process as recorded, as text (processes.pid)';
COMMENT ON COLUMN os_calls.tid IS 'thread as recorded, as text';
COMMENT ON COLUMN os_calls.start_ns IS 'start in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN os_calls.dur_ns IS 'length in ns';
COMMENT ON COLUMN os_calls.result IS 'value that the call returned; NULL if not recorded';
COMMENT ON COLUMN os_calls.depth IS 'number of recorded calls around it (nestingLevel); NULL if not recorded';

-- counters ------------------------------------------------------------------------------------------------------------

COMMENT ON TABLE counters IS 'one row a recorded value, or set of values, of a counter (events of phase C; GPU metrics in nsys exports)';
COMMENT ON COLUMN counters.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN counters.name IS 'name of the counter as recorded; NULL if it has none';
COMMENT ON COLUMN counters.pid IS 'process as recorded, as text since merged traces write text ids; NULL if not recorded';
COMMENT ON COLUMN counters.tid IS 'thread as recorded, as text since merged traces write text ids; NULL if not recorded';
COMMENT ON COLUMN counters.start_ns IS 'moment in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN counters.details IS 'values as recorded, as JSON, in nsys exports with the GPU; NULL if there are none';

-- labels --------------------------------------------------------------------------------------------------------------

COMMENT ON VIEW labels IS 'one row a trace with the label of its run; the other views take run and rank from it';
COMMENT ON COLUMN labels.trace_id IS 'number of the trace within the store (traces.trace_id)';
COMMENT ON COLUMN labels.run_id IS 'run that the trace belongs to (runs.run_id)';
COMMENT ON COLUMN labels.run IS 'label of the run (runs.label)';
COMMENT ON COLUMN labels.rank IS 'rank recorded in the file; NULL if the file does not say';
COMMENT ON COLUMN labels.invisible_replays IS 'graph launches that no GPU activity answers: replays not recorded; if above 0, the trace has no rows in gpu_busy and gaps';

-- good_steps ----------------------------------------------------------------------------------------------------------

COMMENT ON VIEW good_steps IS 'the steps that count in figures per step: those without flags';
COMMENT ON COLUMN good_steps.trace_id IS 'trace that the step belongs to (traces.trace_id)';
COMMENT ON COLUMN good_steps.pid IS 'process whose launches the step takes, as text (steps.pid)';
COMMENT ON COLUMN good_steps.step IS 'number of the step (steps.step)';

-- step_windows --------------------------------------------------------------------------------------------------------

COMMENT ON VIEW step_windows IS 'the periods of steps: from the first GPU activity of a step that counts to that of the next, if it counts too';
COMMENT ON COLUMN step_windows.trace_id IS 'trace that the step belongs to (traces.trace_id)';
COMMENT ON COLUMN step_windows.pid IS 'process whose launches the step takes, as text (steps.pid)';
COMMENT ON COLUMN step_windows.step IS 'number of the step (steps.step)';
COMMENT ON COLUMN step_windows.start_ns IS 'start of its first GPU activity in ns (steps.gpu_start_ns)';
COMMENT ON COLUMN step_windows.end_ns IS 'start of the first GPU activity of the next step in ns; in between is steps.period_ns';

-- device_windows -----------------------------------------------------------------------------------------------------

COMMENT ON VIEW device_windows IS 'each GPU of a trace from its first activity to the end of its last';
COMMENT ON COLUMN device_windows.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN device_windows.device IS 'GPU (devices.device)';
COMMENT ON COLUMN device_windows.start_ns IS 'start of its first activity in ns';
COMMENT ON COLUMN device_windows.end_ns IS 'end of its last in ns';
COMMENT ON COLUMN device_windows.window_ns IS 'time between the two in ns';
COMMENT ON COLUMN device_windows.busy_ns IS 'time in between in which any activity runs in ns; NULL if graph replays were not recorded';

-- host_spans ---------------------------------------------------------------------------------------------------------

COMMENT ON VIEW host_spans IS 'operators and ranges alike: what torch records as one or as the other, by version; neither windows of the profiler nor marks';
COMMENT ON COLUMN host_spans.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN host_spans.name IS 'name of the operator or range';
COMMENT ON COLUMN host_spans.pid IS 'process, as text (ops.pid, ranges.pid)';
COMMENT ON COLUMN host_spans.tid IS 'thread, as text (ops.tid, ranges.tid)';
COMMENT ON COLUMN host_spans.start_ns IS 'start in ns';
COMMENT ON COLUMN host_spans.end_ns IS 'end in ns; NULL for a range that was never closed';

-- nvtx_ranges --------------------------------------------------------------------------------------------------------

COMMENT ON VIEW nvtx_ranges IS 'ranges as nsys counts them, with their run: PyTorch''s operators are ranges in an export if emit_nvtx made them; ranges of torch.profiler are push/pop ranges';
COMMENT ON COLUMN nvtx_ranges.run IS 'label of the run (runs.label)';
COMMENT ON COLUMN nvtx_ranges.rank IS 'rank recorded in the file; NULL if the file does not say';
COMMENT ON COLUMN nvtx_ranges.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN nvtx_ranges.id IS 'number of the range within the trace, over both kinds';
COMMENT ON COLUMN nvtx_ranges.kind IS 'as ranges.kind; push_pop for an operator';
COMMENT ON COLUMN nvtx_ranges.name IS 'DOMAIN:NAME; of the default domain and of torch.profiler the name alone';
COMMENT ON COLUMN nvtx_ranges.style IS 'PushPop, or StartEnd (nsys only)';
COMMENT ON COLUMN nvtx_ranges.pid IS 'process, as text (ranges.pid)';
COMMENT ON COLUMN nvtx_ranges.tid IS 'thread that opens it, as text (ranges.tid)';
COMMENT ON COLUMN nvtx_ranges.end_tid IS 'thread that closes it, if another (ranges.end_tid)';
COMMENT ON COLUMN nvtx_ranges.start_ns IS 'start in ns';
COMMENT ON COLUMN nvtx_ranges.dur_ns IS 'length in ns; NULL if it was never closed';

-- kernels -------------------------------------------------------------------------------------------------------------

COMMENT ON VIEW kernels IS 'gpu_activities of kind kernel, with run and rank';
COMMENT ON COLUMN kernels.run IS 'label of the run (runs.label)';
COMMENT ON COLUMN kernels.rank IS 'rank recorded in the file; NULL if the file does not say';
COMMENT ON COLUMN kernels.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN kernels.activity_id IS 'number of the activity within the trace, in order of start';
COMMENT ON COLUMN kernels.kind IS 'kernel, memcpy, memset, or graph (replay of a whole graph; nsys only)';
COMMENT ON COLUMN kernels.name IS 'full name as recorded; for a memcpy, memset or graph in nsys exports made of its kind; [name ID] where an export lacks the name; NULL if it has none';
COMMENT ON COLUMN kernels.short_name IS 'name of the kernel without return type, namespaces, template and call arguments; for all else the name';
COMMENT ON COLUMN kernels.mangled_name IS 'name of the kernel before demangling; NULL in Kineto traces, or if not recorded';
COMMENT ON COLUMN kernels.category IS 'what the kernel computes, e.g. gemm: by a decisive name, else the operator, else a weaker name; other if none knows; NULL unless kind is kernel';
COMMENT ON COLUMN kernels.category_by_name IS 'what the kernel computes by the first of the rules that its name matches; other if none; NULL unless kind is kernel';
COMMENT ON COLUMN kernels.category_source IS 'what gave category: name, op (the operator at the launch) or none (category is other); NULL unless kind is kernel';
COMMENT ON COLUMN kernels.origin IS 'who made the kernel, e.g. cublas, aten, inductor, by the first rule that its name matches; unknown if none; NULL unless kind is kernel';
COMMENT ON COLUMN kernels.phase IS 'what it served: optimizer, data (loading), backward, forward or, without an operator, other; see docs/meaning.md';
COMMENT ON COLUMN kernels.pid IS 'process that launched it: as recorded (nsys), else that of the API calls if all share one, else that of launch_id; NULL if none is known';
COMMENT ON COLUMN kernels.device IS 'GPU that it ran on (devices.device)';
COMMENT ON COLUMN kernels.context IS 'CUDA context; NULL if not recorded, as on AMD';
COMMENT ON COLUMN kernels.green_context IS 'CUDA green context; NULL in Kineto traces';
COMMENT ON COLUMN kernels.stream IS 'stream that it ran on; NULL if not recorded';
COMMENT ON COLUMN kernels.start_ns IS 'start in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN kernels.dur_ns IS 'length in ns; 0 is counted as an activity but is not busy';
COMMENT ON COLUMN kernels.correlation_id IS 'id that it shares with the API call that launched it; NULL if not recorded; 0 or NULL links to none';
COMMENT ON COLUMN kernels.external_id IS 'External id as recorded: external_id of the operator, or the correlation id again in old files; NULL if not recorded';
COMMENT ON COLUMN kernels.launch_id IS 'API call that launched it (api_calls.call_id): the only one of its process (nsys), file or merged rank with its correlation_id; NULL if none or several';
COMMENT ON COLUMN kernels.op_id IS 'innermost operator open at the launch (ops.op_id), of a replay that around the graph launch; NULL if none was, or no launch is known';
COMMENT ON COLUMN kernels.step IS 'step in which its launch call starts (steps.step); NULL if that is in none or launch_id is NULL';
COMMENT ON COLUMN kernels.graph_id IS 'CUDA graph that it is part of; NULL if it is in none or not recorded (Kineto before torch 2.12)';
COMMENT ON COLUMN kernels.graph_exec_id IS 'executable graph that it is part of; NULL in Kineto traces';
COMMENT ON COLUMN kernels.graph_node_id IS 'node of the graph that it is; NULL if it is in none or not recorded (Kineto before torch 2.12)';
COMMENT ON COLUMN kernels.grid_x IS 'grid size in x, in blocks; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN kernels.grid_y IS 'grid size in y, in blocks; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN kernels.grid_z IS 'grid size in z, in blocks; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN kernels.block_x IS 'block size in x, in threads; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN kernels.block_y IS 'block size in y, in threads; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN kernels.block_z IS 'block size in z, in threads; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN kernels.registers IS 'registers per thread; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN kernels.shared_bytes IS 'shared memory per block in bytes, static and dynamic together; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN kernels.static_shared_bytes IS 'static shared memory per block in bytes; NULL in Kineto traces';
COMMENT ON COLUMN kernels.dynamic_shared_bytes IS 'dynamic shared memory per block in bytes; NULL in Kineto traces';
COMMENT ON COLUMN kernels.occupancy_pct IS 'occupancy in percent as the profiler estimates it, 0 for tiny grids and, in Kineto, above 48 KiB of shared memory; NULL for copies, or if not recorded';
COMMENT ON COLUMN kernels.bytes IS 'bytes copied or set; NULL for a kernel, or if not recorded';
COMMENT ON COLUMN kernels.copy_kind IS 'direction of a memcpy: HtoD, DtoH, DtoD, HtoH, PtoP, or with A for an array; NULL for all else, or if not recorded';
COMMENT ON COLUMN kernels.src_kind IS 'memory that a memcpy reads, e.g. Pageable, Pinned, Device; NULL for all else, or if not recorded';
COMMENT ON COLUMN kernels.dst_kind IS 'memory that a memcpy or memset writes, e.g. Pageable, Pinned, Device; NULL for a kernel, or if not recorded';
COMMENT ON COLUMN kernels.src_device IS 'GPU that a peer-to-peer memcpy reads from; NULL for all else';
COMMENT ON COLUMN kernels.dst_device IS 'GPU that a peer-to-peer memcpy writes to; NULL for all else';
COMMENT ON COLUMN kernels.details IS 'recorded fields that have no column, as JSON; NULL if there are none';

-- memops --------------------------------------------------------------------------------------------------------------

COMMENT ON VIEW memops IS 'gpu_activities of kind memcpy and memset, with run and rank';
COMMENT ON COLUMN memops.run IS 'label of the run (runs.label)';
COMMENT ON COLUMN memops.rank IS 'rank recorded in the file; NULL if the file does not say';
COMMENT ON COLUMN memops.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN memops.activity_id IS 'number of the activity within the trace, in order of start';
COMMENT ON COLUMN memops.kind IS 'kernel, memcpy, memset, or graph (replay of a whole graph; nsys only)';
COMMENT ON COLUMN memops.name IS 'full name as recorded; for a memcpy, memset or graph in nsys exports made of its kind; [name ID] where an export lacks the name; NULL if it has none';
COMMENT ON COLUMN memops.short_name IS 'name of the kernel without return type, namespaces, template and call arguments; for all else the name';
COMMENT ON COLUMN memops.mangled_name IS 'name of the kernel before demangling; NULL in Kineto traces, or if not recorded';
COMMENT ON COLUMN memops.category IS 'what the kernel computes, e.g. gemm: by a decisive name, else the operator, else a weaker name; other if none knows; NULL unless kind is kernel';
COMMENT ON COLUMN memops.category_by_name IS 'what the kernel computes by the first of the rules that its name matches; other if none; NULL unless kind is kernel';
COMMENT ON COLUMN memops.category_source IS 'what gave category: name, op (the operator at the launch) or none (category is other); NULL unless kind is kernel';
COMMENT ON COLUMN memops.origin IS 'who made the kernel, e.g. cublas, aten, inductor, by the first rule that its name matches; unknown if none; NULL unless kind is kernel';
COMMENT ON COLUMN memops.phase IS 'what it served: optimizer, data (loading), backward, forward or, without an operator, other; see docs/meaning.md';
COMMENT ON COLUMN memops.pid IS 'process that launched it: as recorded (nsys), else that of the API calls if all share one, else that of launch_id; NULL if none is known';
COMMENT ON COLUMN memops.device IS 'GPU that it ran on (devices.device)';
COMMENT ON COLUMN memops.context IS 'CUDA context; NULL if not recorded, as on AMD';
COMMENT ON COLUMN memops.green_context IS 'CUDA green context; NULL in Kineto traces';
COMMENT ON COLUMN memops.stream IS 'stream that it ran on; NULL if not recorded';
COMMENT ON COLUMN memops.start_ns IS 'start in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN memops.dur_ns IS 'length in ns; 0 is counted as an activity but is not busy';
COMMENT ON COLUMN memops.correlation_id IS 'id that it shares with the API call that launched it; NULL if not recorded; 0 or NULL links to none';
COMMENT ON COLUMN memops.external_id IS 'External id as recorded: external_id of the operator, or the correlation id again in old files; NULL if not recorded';
COMMENT ON COLUMN memops.launch_id IS 'API call that launched it (api_calls.call_id): the only one of its process (nsys), file or merged rank with its correlation_id; NULL if none or several';
COMMENT ON COLUMN memops.op_id IS 'innermost operator open at the launch (ops.op_id), of a replay that around the graph launch; NULL if none was, or no launch is known';
COMMENT ON COLUMN memops.step IS 'step in which its launch call starts (steps.step); NULL if that is in none or launch_id is NULL';
COMMENT ON COLUMN memops.graph_id IS 'CUDA graph that it is part of; NULL if it is in none or not recorded (Kineto before torch 2.12)';
COMMENT ON COLUMN memops.graph_exec_id IS 'executable graph that it is part of; NULL in Kineto traces';
COMMENT ON COLUMN memops.graph_node_id IS 'node of the graph that it is; NULL if it is in none or not recorded (Kineto before torch 2.12)';
COMMENT ON COLUMN memops.grid_x IS 'grid size in x, in blocks; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN memops.grid_y IS 'grid size in y, in blocks; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN memops.grid_z IS 'grid size in z, in blocks; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN memops.block_x IS 'block size in x, in threads; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN memops.block_y IS 'block size in y, in threads; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN memops.block_z IS 'block size in z, in threads; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN memops.registers IS 'registers per thread; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN memops.shared_bytes IS 'shared memory per block in bytes, static and dynamic together; NULL for memcpy and memset, or if not recorded';
COMMENT ON COLUMN memops.static_shared_bytes IS 'static shared memory per block in bytes; NULL in Kineto traces';
COMMENT ON COLUMN memops.dynamic_shared_bytes IS 'dynamic shared memory per block in bytes; NULL in Kineto traces';
COMMENT ON COLUMN memops.occupancy_pct IS 'occupancy in percent as the profiler estimates it, 0 for tiny grids and, in Kineto, above 48 KiB of shared memory; NULL for copies, or if not recorded';
COMMENT ON COLUMN memops.bytes IS 'bytes copied or set; NULL for a kernel, or if not recorded';
COMMENT ON COLUMN memops.copy_kind IS 'direction of a memcpy: HtoD, DtoH, DtoD, HtoH, PtoP, or with A for an array; NULL for all else, or if not recorded';
COMMENT ON COLUMN memops.src_kind IS 'memory that a memcpy reads, e.g. Pageable, Pinned, Device; NULL for all else, or if not recorded';
COMMENT ON COLUMN memops.dst_kind IS 'memory that a memcpy or memset writes, e.g. Pageable, Pinned, Device; NULL for a kernel, or if not recorded';
COMMENT ON COLUMN memops.src_device IS 'GPU that a peer-to-peer memcpy reads from; NULL for all else';
COMMENT ON COLUMN memops.dst_device IS 'GPU that a peer-to-peer memcpy writes to; NULL for all else';
COMMENT ON COLUMN memops.details IS 'recorded fields that have no column, as JSON; NULL if there are none';

-- launches ------------------------------------------------------------------------------------------------------------

COMMENT ON VIEW launches IS 'one row a GPU activity whose launch call is known, with that call, run and rank; a graph launch has one row an activity';
COMMENT ON COLUMN launches.run IS 'label of the run (runs.label)';
COMMENT ON COLUMN launches.rank IS 'rank recorded in the file; NULL if the file does not say';
COMMENT ON COLUMN launches.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN launches.activity_id IS 'the GPU activity (gpu_activities.activity_id)';
COMMENT ON COLUMN launches.kind IS 'kernel, memcpy, memset, or graph (replay of a whole graph; nsys only)';
COMMENT ON COLUMN launches.name IS 'full name as recorded; for a memcpy, memset or graph in nsys exports made of its kind; [name ID] where an export lacks the name; NULL if it has none';
COMMENT ON COLUMN launches.category IS 'what the kernel computes, e.g. gemm, elementwise, other (gpu_activities.category); NULL unless kind is kernel';
COMMENT ON COLUMN launches.device IS 'GPU that it ran on (devices.device)';
COMMENT ON COLUMN launches.stream IS 'stream that it ran on; NULL if not recorded';
COMMENT ON COLUMN launches.step IS 'step in which the launch call starts (steps.step); NULL if in none';
COMMENT ON COLUMN launches.start_ns IS 'start of the activity in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN launches.dur_ns IS 'length of the activity in ns';
COMMENT ON COLUMN launches.call_id IS 'API call that launched the activity (api_calls.call_id)';
COMMENT ON COLUMN launches.api_name IS 'name of the call (api_calls.name); NULL if it has none';
COMMENT ON COLUMN launches.role IS 'what the call does (api_calls.role)';
COMMENT ON COLUMN launches.pid IS 'process of the launch call';
COMMENT ON COLUMN launches.tid IS 'thread of the call as recorded, as text; NULL if not recorded';
COMMENT ON COLUMN launches.launch_start_ns IS 'start of the call in ns, as start_ns';
COMMENT ON COLUMN launches.launch_dur_ns IS 'length of the call in ns';
COMMENT ON COLUMN launches.latency_ns IS 'start_ns - launch_start_ns, in ns; negative if the clocks of GPU and host disagree';
COMMENT ON COLUMN launches.queue_ns IS 'from the end of the call to start_ns, in ns; NULL if the activity starts before the call ends';

-- idle ----------------------------------------------------------------------------------------------------

COMMENT ON VIEW idle IS 'the parts of the gaps of devices (gap_parts), with their gap and run';
COMMENT ON COLUMN idle.run IS 'label of the run (runs.label)';
COMMENT ON COLUMN idle.rank IS 'rank recorded in the file; NULL if the file does not say';
COMMENT ON COLUMN idle.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN idle.device IS 'GPU that is idle (devices.device)';
COMMENT ON COLUMN idle.gap_id IS 'number of the gap within the trace, in order of device and start';
COMMENT ON COLUMN idle.start_ns IS 'start in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN idle.dur_ns IS 'length in ns, above 0';
COMMENT ON COLUMN idle.step IS 'step of the activity after_id (steps.step); NULL if it is in none';
COMMENT ON COLUMN idle.launch_state IS 'launch of after_id, seen from the start of the gap: host (not begun), launching (running), queued (returned), unknown (no launch)';
COMMENT ON COLUMN idle.before_id IS 'activity that ends where the gap starts (gpu_activities.activity_id), the largest id of several';
COMMENT ON COLUMN idle.after_id IS 'activity of positive length that starts where the gap ends, of several the first by end and id; NULL for a gap after the last work';
COMMENT ON COLUMN idle.part IS 'host (until the launch began), launch (from then on), or whole';
COMMENT ON COLUMN idle.cause IS 'why, e.g. sync, dataloader, cpu_ops, python, launch_latency, queue_latency, in_graph, dependency; docs/meaning.md explains each';
COMMENT ON COLUMN idle.ns IS 'length of the part in ns, above 0';
COMMENT ON COLUMN idle.evidence IS 'what shows it: the name of the call, operator, range or Python function; NULL where the cause says all';
COMMENT ON COLUMN idle.call_id IS 'API call that the host or the GPU waited for: the synchronising one for sync, else the launch (api_calls.call_id); NULL without a launch';
COMMENT ON COLUMN idle.op_id IS 'operator that was being dispatched: around the launch, or around the call that waited (ops.op_id); NULL if none was';

-- stream_idle ----------------------------------------------------------------------------------------------------

COMMENT ON VIEW stream_idle IS 'the parts of the gaps of streams (stream_gap_parts), with their gap and run';
COMMENT ON COLUMN stream_idle.run IS 'label of the run (runs.label)';
COMMENT ON COLUMN stream_idle.rank IS 'rank recorded in the file; NULL if the file does not say';
COMMENT ON COLUMN stream_idle.trace_id IS 'trace that the row belongs to (traces.trace_id)';
COMMENT ON COLUMN stream_idle.device IS 'GPU of the stream (devices.device)';
COMMENT ON COLUMN stream_idle.stream IS 'stream that is idle; NULL if not recorded';
COMMENT ON COLUMN stream_idle.gap_id IS 'number of the gap within the trace, in order of device, stream and start';
COMMENT ON COLUMN stream_idle.start_ns IS 'start in ns, counted from the first stored event of the trace (traces.origin_ns)';
COMMENT ON COLUMN stream_idle.dur_ns IS 'length in ns, above 0';
COMMENT ON COLUMN stream_idle.step IS 'step of the activity after_id (steps.step); NULL if it is in none';
COMMENT ON COLUMN stream_idle.launch_state IS 'launch of after_id, seen from the start of the gap: host (not begun), launching (running), queued (returned), unknown (no launch)';
COMMENT ON COLUMN stream_idle.before_id IS 'activity that ends where the gap starts (gpu_activities.activity_id), the largest id of several';
COMMENT ON COLUMN stream_idle.after_id IS 'activity of positive length that starts where the gap ends, of several the first by end and id; NULL for a gap after the last work';
COMMENT ON COLUMN stream_idle.part IS 'host (until the launch began), launch (from then on), or whole';
COMMENT ON COLUMN stream_idle.cause IS 'why, e.g. sync, dataloader, cpu_ops, python, launch_latency, queue_latency, in_graph, dependency; docs/meaning.md explains each';
COMMENT ON COLUMN stream_idle.ns IS 'length of the part in ns, above 0';
COMMENT ON COLUMN stream_idle.evidence IS 'what shows it: the name of the call, operator, range or Python function; NULL where the cause says all';
COMMENT ON COLUMN stream_idle.call_id IS 'API call that the host or the GPU waited for: the synchronising one for sync, else the launch (api_calls.call_id); NULL without a launch';
COMMENT ON COLUMN stream_idle.op_id IS 'operator that was being dispatched: around the launch, or around the call that waited (ops.op_id); NULL if none was';

-- thread_names --------------------------------------------------------------------------------------------------------

COMMENT ON VIEW thread_names IS 'the threads that have a name; where several of a trace have the same, with process and thread';
COMMENT ON COLUMN thread_names.trace_id IS 'trace of the row (traces.trace_id)';
COMMENT ON COLUMN thread_names.pid IS 'process as text (threads.pid)';
COMMENT ON COLUMN thread_names.tid IS 'thread as text (threads.tid)';
COMMENT ON COLUMN thread_names.name IS 'its name, unlike those of the other threads of the trace';

-- timeline_items ------------------------------------------------------------------------------------------------------

COMMENT ON VIEW timeline_items IS 'everything with a place on a timeline: GPU work, parts of gaps, steps, ranges, operators and CUDA calls';
COMMENT ON COLUMN timeline_items.trace_id IS 'trace of the row (traces.trace_id)';
COMMENT ON COLUMN timeline_items.kind IS 'stream (GPU work), idle (parts of gaps), steps, ranges, ops or calls';
COMMENT ON COLUMN timeline_items.lane IS 'the device and stream, or the thread';
COMMENT ON COLUMN timeline_items.depth IS 'how many of the same kind are around it; 0 where nothing nests';
COMMENT ON COLUMN timeline_items.item IS 'its id among its kind; of a part of a gap, twice gaps.gap_id, and one more for a part after the launch';
COMMENT ON COLUMN timeline_items.name IS 'its name; of idle time its cause';
COMMENT ON COLUMN timeline_items.what IS 'category, cause, phase, role or kind';
COMMENT ON COLUMN timeline_items.start_ns IS 'start in ns from the first usable time of the trace';
COMMENT ON COLUMN timeline_items.dur_ns IS 'length in ns';
COMMENT ON COLUMN timeline_items.from_ns IS 'start in ns; of a part of a gap that of the gap: a condition on it reads only what is near';
COMMENT ON COLUMN timeline_items.till_ns IS 'end in ns; of a part of a gap that of the gap';
