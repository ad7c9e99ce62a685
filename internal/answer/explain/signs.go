package explain

import "regexp"

// Sign is what a frame says about its stack.
type Sign uint64

const (
	signLoaderNext  Sign = 1 << iota // the training thread fetches from PyTorch's data loader
	signLoaderStart                  // the loader starts its workers
	signWorker                       // a process of the data loader
	signOptimizer                    // PyTorch's optimizers
	signModule                       // the call of a module
	signBackward                     // the autograd engine
	signSave                         // a checkpoint is written
	signCompile                      // a compiler of a framework is at work
	signGCExplicit                   // gc.collect
	signPickle                       // pickle and what is built on it
	signPipe                         // multiprocessing's connections
	signJSON                         // JSON
	signPydantic                     // pydantic
	signAnomaly                      // autograd's anomaly detection
	signCollective                   // torch.distributed and its libraries
	signLock                         // a lock of the interpreter's threading module
	signGIL                          // the interpreter's own lock
	signOpenMP                       // an OpenMP runtime
	signOpenMPWait                   // its barriers
	signSleep                        // time.sleep
	signEventLoop                    // an event loop runs
	signSelect                       // it waits for events
	signImport                       // a module is imported
	signPool                         // a pool of processes or threads
	signHTTP                         // an HTTP client
	signTLSSetup                     // a TLS context is made
	signSubprocess                   // another program is waited for
	signDeepCopy                     // copy.deepcopy
	signImage                        // images are decoded, resized or encoded
	signRows                         // pandas' loops over rows
	signTraceback                    // tracebacks are made
	signDeviceSync                   // the thread waits for a device
	signLogging                      // logging, progress bars, trackers
	signTokenizer                    // text is split into tokens
	signDenseGrad                    // an embedding's dense gradient
	signHTTPServer                   // an HTTP server runs
	signEmptyCache                   // the device allocator's cache is given back
	signPlot                         // figures are drawn
	signNetworkFS                    // remote storage
	signModelLoad                    // a model or checkpoint is loaded
	signElements                     // NumPy calls a Python function for each element
	signLists                        // tensors are made of Python lists, or lists of tensors
	signDatabase                     // a database is asked
	signMessage                      // a message of another process is waited for in Redis
	signHandOver                     // a thread waits for what another one makes: a queue, a future, an event
	signRegex                        // a regular expression is matched
	signListScan                     // a list or tuple is searched from its front
	signListShift                    // a list's elements are moved to make or close a gap
	signCompress                     // data is compressed or unpacked
	signObjects                      // a collective of Python objects
)

// interpreterModule are the files that CPython itself is in: a program, or a library.
var interpreterModule = regexp.MustCompile(`^(lib)?python[0-9.]*[a-z]*(\.so[0-9.]*)?$`)

// sign describes frames: each expression that is set must match.
type sign struct {
	sign                         Sign
	kind, function, file, module string
}

// signTable is by the names of CPython 3.9 to 3.14, PyTorch 1.13 to 2.15 and the libraries named in the paths.
var signTable = []sign{
	{signLoaderNext, "python", `__next__|_next_data|_try_get_data|_get_data`, `torch/utils/data/dataloader\.py$`, ""},
	{signLoaderStart, "python", `_MultiProcessingDataLoaderIter\.__init__|_reset|_shutdown_workers`, `torch/utils/data/dataloader\.py$`, ""},
	{signLoaderStart, "python", `^__init__$`, `torch/utils/data/dataloader\.py$`, ""},
	{signWorker, "python", `_worker_loop`, `torch/utils/data/_utils/worker\.py$`, ""},
	{signOptimizer, "python", "", `(^|/)torch/optim/[^/]+\.py$`, ""},
	{signModule, "python", `_call_impl|_wrapped_call_impl`, `torch/nn/modules/module\.py$`, ""},
	{signModule, "python", "", `(^|/)(flax|haiku|equinox)/`, ""},
	{signBackward, "python", `backward`, `torch/(_tensor|autograd/__init__|autograd/graph)\.py$`, ""},
	{signBackward, "native", `^torch::autograd::(python::Python)?Engine::`, "", ""},
	{signSave, "python", `save`, `torch/serialization\.py$|torch/distributed/checkpoint/|(^|/)safetensors/`, ""},
	{signCompile, "python", "",
		`(^|/)torch/(_dynamo|_inductor|_functorch/(aot_autograd|_aot_autograd|partitioners|compile)|fx/experimental|fx/passes|fx/interpreter|_higher_order_ops|export|_export|_decomp|_refs|_prims|_meta_registrations)`, ""},
	{signCompile, "python", "compile|lower|trace_to|make_jaxpr|_create_pjit_jaxpr|_infer_params|cached_lowering",
		`(^|/)jax/_src/(compiler|compilation_cache|pjit|interpreters/(pxla|mlir|partial_eval)|stages|dispatch|linear_util)\.py$`, ""},
	{signCompile, "python", "", `(^|/)triton/(compiler|backends|runtime/jit)`, ""},
	{signCompile, "python", "", `(^|/)numba/core/`, ""},
	{signCompile, "native",
		`^(llvm|mlir|clang)::|^xla::(cpu::)?(CpuCompiler|.*HloPass|.*Compiler|HloModule|.*IrEmitter|LayoutAssignment|HloPassPipeline|TfrtCpuClient::Compile|PjRt.*Compile)|TfrtCpuClient::Compile|PyClient::Compile`, "", ""},
	{signGCExplicit, "native", `^gc_collect(_impl)?$`, "", ""},
	{signPickle, "python", "",
		`(^|/)(pickle|_pickle|copyreg|_compat_pickle|multiprocessing/reduction)\.py$|(^|/)(cloudpickle|dill)/|joblib/numpy_pickle|torch/multiprocessing/reductions\.py$`, ""},
	{signPickle, "python", `_object_to_tensor|_tensor_to_object`, `torch/distributed/`, ""},
	{signPickle, "native", "", "", `^_pickle\.`},
	{signPickle, "native", `^(_Pickler|_Unpickler|_pickle|Pickler|Unpickler)_|^load_(build|reduce|counted_binbytes)`, "", ""},
	{signPipe, "python", "", `(^|/)multiprocessing/connection\.py$`, ""},
	{signJSON, "python", "",
		`(^|/)json/(encoder|decoder|scanner|__init__)\.py$|(^|/)(simplejson|ujson|orjson|msgpack|yaml)/|fastapi/encoders\.py$`, ""},
	{signJSON, "native", "", "", `^(_json|orjson|ujson|_yaml|_cmsgpack)\.`},
	{signPydantic, "python", "", `(^|/)pydantic(_core)?/`, ""},
	{signPydantic, "native", "", "", `^_pydantic_core\.`},
	{signAnomaly, "native", `AnomalyMetadata|AnomalyMode`, "", ""},
	{signAnomaly, "python", "", `torch/autograd/anomaly_mode\.py$`, ""},
	{signCollective, "python", "",
		`torch/distributed/(distributed_c10d|c10d_logger|_functional_collectives)\.py$|(^|/)(horovod|mpi4py|deepspeed/comm)/`, ""},
	{signObjects, "python", `^(all_gather|gather|broadcast|scatter|send|recv)_object(s|_list)?$`, `torch/distributed/`, ""},
	{signCollective, "native", `^(c10d|gloo|nccl|mpi)::|^(nccl|rccl|MPI_|PMPI_)[A-Z]`, "", ""},
	{signLock, "native",
		`^(lock_)?PyThread_acquire_lock|^(acquire_timed|lock_acquire|rlock_acquire|lock_PyThread_acquire_lock|rlock_acquire_locked|_PyMutex_Lock.*|PyMutex_Lock.*)`, "", ""},
	{signLock, "python", `acquire|wait|__enter__|join|_wait_for_tstate_lock|get$|result$`,
		`(^|/)(threading|queue|concurrent/futures/[^/]+|multiprocessing/synchronize)\.py$`, ""},
	{signGIL, "native", `^(take_gil|PyEval_RestoreThread|PyEval_AcquireThread|PyGILState_Ensure)$`, "", ""},
	{signOpenMP, "native", "", "", `^lib(gomp|iomp5|omp)[-.0-9a-f]*\.so`},
	{signOpenMPWait, "native",
		`^(gomp_(team_)?barrier|gomp_.*wait|GOMP_.*barrier|gomp_team_end|do_wait|do_spin|__kmp_.*(wait|barrier|fork_barrier|yield)|futex_wait)`,
		"", `^lib(gomp|iomp5|omp)[-.0-9a-f]*\.so`},
	{signSleep, "native", `^(time_sleep|pysleep)$`, "", ""},
	{signEventLoop, "python", `_run_once|run_forever|run_until_complete`, `(^|/)asyncio/|(^|/)(uvloop|trio|anyio)/`, ""},
	{signSelect, "python", `select|poll`, `(^|/)selectors\.py$`, ""},
	{signSelect, "python", `wait_for_termination$`, `(^|/)grpc/`, ""},
	{signImport, "python", "", `^<frozen importlib`, ""},
	{signPool, "python", "", `(^|/)multiprocessing/pool\.py$|(^|/)concurrent/futures/|(^|/)(joblib|loky)/`, ""},
	{signHTTP, "python", "", `(^|/)(requests|httpx|httpcore|urllib3|aiohttp|botocore|boto3|http/client\.py|urllib/request\.py)`, ""},
	{signTLSSetup, "python", `create_default_context|load_verify_locations|load_default_certs|create_ssl_context|SSLContext`,
		`ssl|httpx/_config\.py$`, ""},
	{signSubprocess, "python", `wait|communicate|_try_wait|check_output|run|_wait`, `(^|/)subprocess\.py$|multiprocessing/popen_`, ""},
	{signDeepCopy, "python", "", `(^|/)copy\.py$`, ""},
	{signImage, "python", "", `(^|/)PIL/|(^|/)(cv2|imageio|skimage|torchvision/(io|transforms))/`, ""},
	{signImage, "native", "", "", `^(_imaging|cv2|libjpeg|libturbojpeg|libpng|libwebp)`},
	{signRows, "python", `iterrows|itertuples|apply$|iteritems|__iter__|^Series\._get_value$|^_ScalarAccessIndexer\.|\._ixs$`,
		`(^|/)pandas/core/`, ""},
	{signTraceback, "python", "", `(^|/)(traceback|linecache)\.py$`, ""},
	{signDeviceSync, "native",
		`^(cudaDeviceSynchronize|cudaStreamSynchronize|cuStreamSynchronize|cuCtxSynchronize|cuEventSynchronize|hipDeviceSynchronize|hipStreamSynchronize)`, "", ""},
	{signLogging, "python", "", `(^|/)(logging|tqdm|wandb|mlflow|tensorboard|torch/utils/tensorboard|rich)/`, ""},
	{signTokenizer, "python", "", `(^|/)(tokenizers|sentencepiece|transformers/tokenization_)|transformers/models/.*/tokenization_`, ""},
	{signTokenizer, "native", "", "", `^tokenizers\.`},
	{signDenseGrad, "op", `^aten::embedding_(dense_)?backward|embedding_dense_backward`, "", ""},
	{signHTTPServer, "python", "",
		`(^|/)(uvicorn|starlette|fastapi|gunicorn|flask|werkzeug|aiohttp/web|tornado|hypercorn|django|gradio|grpc|bottle|cherrypy)/|(^|/)(http/server|socketserver|wsgiref/simple_server|xmlrpc/server)\.py$`, ""},
	{signEmptyCache, "python", `empty_cache`, `torch/(cuda|mps|xpu)/`, ""},
	{signPlot, "python", "", `(^|/)(matplotlib|seaborn|plotly)/`, ""},
	{signModelLoad, "python", `^load$|from_pretrained|load_file|InferenceSession\.__init__|_create_inference_session|hf_hub_download`,
		`torch/serialization\.py$|(^|/)(transformers|diffusers|safetensors|onnxruntime|huggingface_hub|joblib)/`, ""},
	{signElements, "python", `^vectorize\.|^__call__$|^_vectorize_call|^apply_along_axis$|^apply_over_axes$`,
		`numpy/lib/(_?function_base|_?shape_base)[^/]*\.py$`, ""},
	{signLists, "native", `(^|::)(recursive_store|infer_scalar_type|compute_sizes|recursive_to_list)(\(|$)`, "", `^libtorch_python`},
	{signDatabase, "native", "", "", `^(_sqlite3|libsqlite3|_psycopg|_duckdb|duckdb|libmysqlclient|_mysql)[-.]`},
	{signDatabase, "python", "",
		`(^|/)(sqlalchemy|psycopg2?|pymysql|asyncpg|pymongo|redis|duckdb|peewee|mysql/connector|lmdb)/|(^|/)(sqlite3/[^/]+|peewee)\.py$`, ""},
	{signMessage, "python", `(^|\.)(blpop|brpop|brpoplpush|blmove|blmpop|bzpopmin|bzpopmax|bzmpop|xread|xreadgroup|listen|get_message)$`,
		`(^|/)redis/`, ""},
	{signHandOver, "python", `(^|\.)(get|put|join)$`, `(^|/)queue\.py$`, ""},
	{signHandOver, "python", `(^|\.)(result|exception|wait|as_completed|result_iterator)$`, `(^|/)concurrent/futures/_base\.py$`, ""},
	{signHandOver, "python", `(^|\.)(wait|wait_for|join)$`, `(^|/)threading\.py$`, ""},
	{signHandOver, "native", `^(_queue_)?SimpleQueue_(get|put)|^simplequeue_(get|put)`, "", ""},
	{signRegex, "native",
		`^(sre_(ucs[124]_)?(match|search|count|charset)|_sre_SRE_|pattern_(match|search|subx?|split|findall|fullmatch))|^SRE\(`,
		"", ""},
	{signRegex, "native", "", "", `^(_sre|_regex)\.`},
	{signListScan, "native", `^(list_contains|list_index(_impl)?|list_count|list_remove|tuple_?contains|tuple_index(_impl)?)$`, "", ""},
	{signListShift, "native", `^(list_pop(_impl)?|list_insert(_impl)?|ins1|list_ass_slice(_lock_held)?|list_ass_item)$`, "", ""},
	{signCompress, "native",
		`^(inflate(_fast|_table|_block_data)?|deflate(_fast|_slow|_stored)?|longest_match|compress_block|(ZSTD|LZ4|BZ2|lzma)_\w+)$`,
		"", ""},
	{signCompress, "native", "", "",
		`^lib(z|z-ng|zstd|lzma|bz2|lz4|snappy|brotli\w*|deflate|isal)[-.]|^(zlib|_bz2|_lzma|_zstd|zstd|lz4|_block|blosc\w*)\.`},
	{signNetworkFS, "python", "", `(^|/)(fsspec|s3fs|gcsfs|smart_open|webdataset|streaming)/`, ""},
}

type compiledSign struct {
	sign                   Sign
	kind                   string
	function, file, module *regexp.Regexp
}

var compiledSigns = func() (all []compiledSign) {
	of := func(s string) *regexp.Regexp {
		if s == "" {
			return nil
		}
		return regexp.MustCompile(s)
	}
	for _, s := range signTable {
		all = append(all, compiledSign{s.sign, s.kind, of(s.function), of(s.file), of(s.module)})
	}
	return all
}()

func signsOf(f *Frame) (signs Sign) {
	matches := func(r *regexp.Regexp, s string) bool { return r == nil || r.MatchString(s) }
	for _, s := range compiledSigns {
		if s.kind == f.Kind && signs&s.sign == 0 && matches(s.function, f.Function) && matches(s.file, f.File) && matches(s.module, f.Module) {
			signs |= s.sign
		}
	}
	return signs
}
