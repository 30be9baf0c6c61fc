/*
 * The .NET runtime, its rundown, and its private provider: collections, suspensions, allocations,
 * methods, modules, stacks, assembly binding.
 *
 * Keys are event ids; each provider has its own. Layouts: ClrEtwAll.man of the .NET runtime;
 * checked on traces of .NET Framework 4.5 and .NET 8.
 */
#include "source/etw/tables_private.h"

#define RUNTIME "Microsoft-Windows-DotNETRuntime"
#define RUNDOWN RUNTIME "Rundown"
#define PRIVATE RUNTIME "Private"

#define CLR F("ClrInstanceID", ETW_U16)
#define CLR_FROM_1 F("ClrInstanceID", ETW_U16, .from = 1)

static const struct etw_field gc_start[] = {
	[AT_GC_START_COUNT] = F("Count", ETW_U32),
	F("Depth", ETW_U32, .from = 1), F("Reason", ETW_U32), F("Type", ETW_U32, .from = 1),
	[AT_GC_START_CLR] = CLR_FROM_1,
	F("ClientSequenceNumber", ETW_U64, .from = 2),
};

static const struct etw_field gc_stop[] = {
	F("Count", ETW_U32), F("Depth", ETW_U32, .from = 1), CLR_FROM_1,
};

static const struct etw_field suspend_start[] = {
	F("Reason", ETW_U32, .from = 1), F("Count", ETW_U32, .from = 1),
	CLR_FROM_1,
};

static const struct etw_field clr_only[] = {[0] = CLR};

static const struct etw_field triggered[] = {
	F("Reason", ETW_U32), CLR,
};

static const struct etw_field heap_stats[] = {
	F("GenerationSize0", ETW_U64), F("TotalPromotedSize0", ETW_U64),
	F("GenerationSize1", ETW_U64), F("TotalPromotedSize1", ETW_U64),
	F("GenerationSize2", ETW_U64), F("TotalPromotedSize2", ETW_U64),
	F("GenerationSize3", ETW_U64), F("TotalPromotedSize3", ETW_U64),
	F("FinalizationPromotedSize", ETW_U64), F("FinalizationPromotedCount", ETW_U64),
	F("PinnedObjectCount", ETW_U32), F("SinkBlockCount", ETW_U32), F("GCHandleCount", ETW_U32),
	CLR_FROM_1, F("GenerationSize4", ETW_U64, .from = 2),
	F("TotalPromotedSize4", ETW_U64, .from = 2),
};

static const struct etw_field allocation_tick[] = {
	F("AllocationAmount", ETW_U32), F("AllocationKind", ETW_U32),
	CLR_FROM_1, F("AllocationAmount64", ETW_U64, .from = 2),
	F("TypeID", ETW_POINTER, .from = 2), F("TypeName", ETW_UTF16Z, .from = 2),
	F("HeapIndex", ETW_U32, .from = 2), F("Address", ETW_POINTER, .from = 3),
	F("ObjectSize", ETW_U64, .from = 4),
};

static const struct etw_field create_segment[] = {
	F("Address", ETW_X64), F("Size", ETW_X64), F("Type", ETW_U32),
	CLR_FROM_1,
};

static const struct etw_field finalizers_stop[] = {F("Count", ETW_U32), CLR};

static const struct etw_field thread_created[] = {
	F("ManagedThreadID", ETW_U64), F("AppDomainID", ETW_U64), F("Flags", ETW_U32),
	F("ManagedThreadIndex", ETW_U32), F("OSThreadID", ETW_U32), CLR,
};

static const struct etw_field finalize_object[] = {
	F("TypeID", ETW_POINTER), F("ObjectID", ETW_POINTER), CLR,
};

static const struct etw_field pin_object[] = {
	F("HandleID", ETW_POINTER), F("ObjectID", ETW_POINTER), F("ObjectSize", ETW_U64),
	F("TypeName", ETW_UTF16Z), CLR,
};

static const struct etw_field generation_range[] = {
	F("Generation", ETW_U8), F("RangeStart", ETW_X64), F("RangeUsedLength", ETW_X64),
	F("RangeReservedLength", ETW_X64), CLR,
};

static const struct etw_field mark[] = {F("HeapNum", ETW_U32), CLR};

static const struct etw_field mark_type[] = {
	F("HeapNum", ETW_U32), CLR, F("Type", ETW_U32), F("Promoted", ETW_U64),
};

static const struct etw_field bulk_type[] = {F("Count", ETW_U32), CLR};    /* then the types */

static const struct etw_field object_ranges[] = {F("Index", ETW_U32), F("Count", ETW_U32), CLR};

static const struct etw_field worker[] = {
	F("ActiveWorkerThreadCount", ETW_U32), F("RetiredWorkerThreadCount", ETW_U32), CLR,
};

static const struct etw_field adjustment_sample[] = {F("Throughput", ETW_F64), CLR};
static const struct etw_field adjustment[] = {
	F("AverageThroughput", ETW_F64), F("NewWorkerThreadCount", ETW_U32), F("Reason", ETW_U32),
	CLR,
};

static const struct etw_field memory_pressure[] = {F("BytesAllocated", ETW_U64), CLR};

/*
 * Ten words for each generation, the size before the collection first (gc_generation_data of
 * gcrecord.h). 3 is that of large objects. 4 is that of pinned objects since .NET 5, and the
 * second pass over generation 0 before; `recorder/analysis/report_events.c` tells them apart.
 */
#define GENERATION(number) F("SizeBefore" number, ETW_SIZE), F(NULL, ETW_WORDS, .n = 9)
#define ALL_GENERATIONS \
	GENERATION("0"), GENERATION("1"), GENERATION("2"), GENERATION("3"), GENERATION("4")

static const struct etw_field per_heap_history[] = {
	CLR, F("FreeListAllocated", ETW_SIZE), F("FreeListRejected", ETW_SIZE),
	F("EndOfSegAllocated", ETW_SIZE), F("CondemnedAllocated", ETW_SIZE),
	F("PinnedAllocated", ETW_SIZE), F("PinnedAllocatedAdvance", ETW_SIZE),
	F("RunningFreeListEfficiency", ETW_U32), F("CondemnReasons0", ETW_U32),
	F("CondemnReasons1", ETW_U32), F("CompactMechanisms", ETW_X32),
	F("ExpandMechanisms", ETW_X32), F("HeapIndex", ETW_U32), F("ExtraGen0Commit", ETW_SIZE),
	F("Count", ETW_U32), ALL_GENERATIONS,
};

/* Of .NET Framework 4.5, checked on one of its traces: 433 bytes. */
static const struct etw_field private_heap_history[] = {
	ALL_GENERATIONS, F(NULL, ETW_BYTES, .n = 28), F("HeapIndex", ETW_U32),
	F("ClrInstanceID", ETW_U8),
};

static const struct etw_field global_heap_history[] = {
	F("FinalYoungestDesired", ETW_U64), F("NumHeaps", ETW_I32),
	F("CondemnedGeneration", ETW_I32), F("Gen0ReductionCount", ETW_I32), F("Reason", ETW_I32),
	F("GlobalMechanisms", ETW_X32), CLR_FROM_1,
	F("PauseMode", ETW_I32, .from = 2), F("MemoryPressure", ETW_I32, .from = 2),
	F("CondemnReasons0", ETW_I32, .from = 3), F("CondemnReasons1", ETW_I32, .from = 3),
	F("Count", ETW_U32, .from = 4),
};

static const struct etw_field loh_compact[] = {CLR, F("Count", ETW_U16)};
static const struct etw_field fit_bucket[] = {
	CLR, F("BucketKind", ETW_U16), F("TotalSize", ETW_U64), F("Count", ETW_U16),
};

static const struct etw_field il_map[] = {
	F("MethodID", ETW_U64), F("ReJITID", ETW_U64), F("MethodExtent", ETW_U8),
	F("CountOfMapEntries", ETW_U16),     /* then so many IL and native offsets */
};

static const struct etw_field exception_block[] = {
	F("EntryEIP", ETW_X64), F("MethodID", ETW_U64), F("MethodName", ETW_UTF16Z), CLR,
};

static const struct etw_field exception[] = {
	F("ExceptionType", ETW_UTF16Z, .from = 1), F("ExceptionMessage", ETW_UTF16Z, .from = 1),
	F("ExceptionEIP", ETW_POINTER, .from = 1), F("ExceptionHRESULT", ETW_I32, .from = 1),
	F("ExceptionFlags", ETW_X16, .from = 1), CLR_FROM_1,
};

static const struct etw_field contention_start[] = {F("ContentionFlags", ETW_U8), CLR};
static const struct etw_field contention_stop[] = {
	F("ContentionFlags", ETW_U8), CLR, F("DurationNs", ETW_F64, .from = 1),
};

#define METHOD_CODE \
	[AT_METHOD_ID] = F("MethodID", ETW_U64), \
	[AT_METHOD_MODULE] = F("ModuleID", ETW_U64), \
	[AT_METHOD_START] = F("MethodStartAddress", ETW_X64), \
	[AT_METHOD_BYTES] = F("MethodSize", ETW_U32), \
	F("MethodToken", ETW_U32), F("MethodFlags", ETW_X32)

static const struct etw_field method[] = {METHOD_CODE, CLR_FROM_1};

static const struct etw_field method_verbose[] = {
	METHOD_CODE,
	[AT_METHOD_NAMESPACE] = F("MethodNamespace", ETW_UTF16Z),
	[AT_METHOD_NAME] = F("MethodName", ETW_UTF16Z),
	[AT_METHOD_SIGNATURE] = F("MethodSignature", ETW_UTF16Z), CLR_FROM_1,
	F("ReJITID", ETW_U64, .from = 2),
};

static const struct etw_field jitting_started[] = {
	F("MethodID", ETW_U64), F("ModuleID", ETW_U64), F("MethodToken", ETW_U32),
	F("MethodILSize", ETW_U32), F("MethodNamespace", ETW_UTF16Z), F("MethodName", ETW_UTF16Z),
	F("MethodSignature", ETW_UTF16Z), CLR_FROM_1,
};

static const struct etw_field module[] = {
	[AT_MODULE_ID] = F("ModuleID", ETW_U64),
	F("AssemblyID", ETW_U64), F("ModuleFlags", ETW_X32), F(NULL, ETW_U32),
	[AT_MODULE_IL_PATH] = F("ModuleILPath", ETW_UTF16Z),
	F("ModuleNativePath", ETW_UTF16Z), CLR_FROM_1,
	F("ManagedPdbSignature", ETW_GUID, .from = 2), F("ManagedPdbAge", ETW_U32, .from = 2),
	F("ManagedPdbBuildPath", ETW_UTF16Z, .from = 2),
	F("NativePdbSignature", ETW_GUID, .from = 2), F("NativePdbAge", ETW_U32, .from = 2),
	F("NativePdbBuildPath", ETW_UTF16Z, .from = 2),
};

static const struct etw_field domain_module[] = {
	F("ModuleID", ETW_U64), F("AssemblyID", ETW_U64), F("AppDomainID", ETW_U64),
	F("ModuleFlags", ETW_X32), F(NULL, ETW_U32), F("ModuleILPath", ETW_UTF16Z),
	F("ModuleNativePath", ETW_UTF16Z), CLR_FROM_1,
};

static const struct etw_field assembly[] = {
	F("AssemblyID", ETW_U64), F("AppDomainID", ETW_U64), F("BindingID", ETW_U64, .from = 1),
	F("AssemblyFlags", ETW_X32), F("FullyQualifiedAssemblyName", ETW_UTF16Z),
	CLR_FROM_1,
};

static const struct etw_field app_domain[] = {
	F("AppDomainID", ETW_U64), F("AppDomainFlags", ETW_X32), F("AppDomainName", ETW_UTF16Z),
	F("AppDomainIndex", ETW_U32, .from = 1), CLR_FROM_1,
};

static const struct etw_field clr_stack[] = {
	CLR, F(NULL, ETW_U16),
	[AT_CLR_STACK_COUNT] = F("FrameCount", ETW_U32),
	[AT_CLR_STACK_FRAMES] = F("Stack", ETW_ADDRESSES, .n = AT_CLR_STACK_COUNT),
};

static const struct etw_field runtime_start[] = {
	CLR, F("Sku", ETW_U16),
	F("BclMajorVersion", ETW_U16), F("BclMinorVersion", ETW_U16), F("BclBuildNumber", ETW_U16),
	F("BclQfeNumber", ETW_U16),
	F("VMMajorVersion", ETW_U16), F("VMMinorVersion", ETW_U16), F("VMBuildNumber", ETW_U16),
	F("VMQfeNumber", ETW_U16),
	F("StartupFlags", ETW_X32), F("StartupMode", ETW_U8), F("CommandLine", ETW_UTF16Z),
	F("ComObjectGuid", ETW_GUID), F("RuntimeDllPath", ETW_UTF16Z),
};

static const struct etw_field private_mark[] = {F("HeapNum", ETW_U32), CLR_FROM_1};

static const struct etw_field settings[] = {
	F("SegmentSize", ETW_U64), F("LargeObjectSegmentSize", ETW_U64), F("ServerGC", ETW_BOOL32),
	CLR_FROM_1,
};

static const struct etw_field private_history[] = {
	F("FinalYoungestDesired", ETW_U64), F("NumHeaps", ETW_I32),
	F("CondemnedGeneration", ETW_I32), F("Gen0ReductionCount", ETW_I32), F("Reason", ETW_I32),
	F("GlobalMechanisms", ETW_I32), CLR_FROM_1,
};

static const struct etw_field binding[] = {
	F("AppDomainID", ETW_U32), F("LoadContextID", ETW_U32), F("FromLoaderCache", ETW_U32),
	F("DynamicLoad", ETW_U32), F("AssemblyCodebase", ETW_UTF16Z), F("AssemblyName", ETW_UTF16Z),
	CLR,
};

static const struct etw_field ngen_bind[] = {
	CLR, F("BindingID", ETW_U64), F("ReasonCode", ETW_U32),
	F("AssemblyName", ETW_UTF16Z),
};

static const struct etw_field fusion[] = {
	CLR, F("Prepend", ETW_BOOL32), F("Message", ETW_UTF16Z),
};

/* ---- classes --------------------------------------------------------------------------------- */

#define EVENT(key, what, called, layout) CLASS(key, what, PROVIDER, called, FIELDS(layout))
#define METHOD(key, what, called, layout) \
	CLASS(key, what, PROVIDER, "Method/" called, FIELDS(layout), .topic = ETW_TOPIC_METHOD)
#define MODULE(key, what, called) \
	CLASS(key, what, PROVIDER, "Loader/" called, FIELDS(module), .topic = ETW_TOPIC_MODULE)
#define STACK(key) \
	CLASS(key, ETW_CLR_STACK, PROVIDER, "ClrStack/Walk", FIELDS(clr_stack), .describes = true)

#define PROVIDER RUNTIME
static const struct etw_class runtime[] = {
	EVENT(1, ETW_GC_START, "GC/Start", gc_start), EVENT(2, ETW_OTHER, "GC/Stop", gc_stop),
	EVENT(3, ETW_OTHER, "GC/RestartEEStop", clr_only),
	EVENT(4, ETW_OTHER, "GC/HeapStats", heap_stats),
	EVENT(5, ETW_OTHER, "GC/CreateSegment", create_segment),
	EVENT(7, ETW_OTHER, "GC/RestartEEStart", clr_only),
	EVENT(8, ETW_OTHER, "GC/SuspendEEStop", clr_only),
	EVENT(9, ETW_OTHER, "GC/SuspendEEStart", suspend_start),
	EVENT(10, ETW_OTHER, "GC/AllocationTick", allocation_tick),
	EVENT(12, ETW_OTHER, "GC/TerminateConcurrentThread", clr_only),
	EVENT(13, ETW_OTHER, "GC/FinalizersStop", finalizers_stop),
	EVENT(14, ETW_OTHER, "GC/FinalizersStart", clr_only),
	EVENT(15, ETW_OTHER, "Type/BulkType", bulk_type),
	EVENT(21, ETW_OTHER, "GC/BulkSurvivingObjectRanges", object_ranges),
	EVENT(22, ETW_OTHER, "GC/BulkMovedObjectRanges", object_ranges),
	EVENT(23, ETW_OTHER, "GC/GenerationRange", generation_range),
	EVENT(25, ETW_OTHER, "GC/MarkStackRoots", mark),
	EVENT(26, ETW_OTHER, "GC/MarkFinalizeQueueRoots", mark),
	EVENT(27, ETW_OTHER, "GC/MarkHandles", mark), EVENT(28, ETW_OTHER, "GC/MarkCards", mark),
	EVENT(29, ETW_OTHER, "GC/FinalizeObject", finalize_object),
	EVENT(33, ETW_OTHER, "GC/PinObjectAtGCTime", pin_object),
	EVENT(35, ETW_OTHER, "GC/Triggered", triggered),
	EVENT(50, ETW_OTHER, "ThreadPoolWorkerThread/Start", worker),
	EVENT(51, ETW_OTHER, "ThreadPoolWorkerThread/Stop", worker),
	EVENT(54, ETW_OTHER, "ThreadPoolWorkerThreadAdjustment/Sample", adjustment_sample),
	EVENT(55, ETW_OTHER, "ThreadPoolWorkerThreadAdjustment/Adjustment", adjustment),
	EVENT(57, ETW_OTHER, "ThreadPoolWorkerThread/Wait", worker),
	EVENT(80, ETW_OTHER, "Exception/Start", exception),
	EVENT(81, ETW_OTHER, "Contention/Start", contention_start), STACK(82),
	EVENT(85, ETW_OTHER, "AppDomainResourceManagement/ThreadCreated", thread_created),
	EVENT(91, ETW_OTHER, "Contention/Stop", contention_stop),
	METHOD(141, ETW_METHOD_LOAD, "Load", method),
	METHOD(142, ETW_METHOD_UNLOAD, "Unload", method),
	METHOD(143, ETW_METHOD_LOAD, "LoadVerbose", method_verbose),
	METHOD(144, ETW_METHOD_UNLOAD, "UnloadVerbose", method_verbose),
	EVENT(145, ETW_OTHER, "Method/JittingStarted", jitting_started),
	EVENT(151, ETW_OTHER, "Loader/DomainModuleLoad", domain_module),
	MODULE(152, ETW_MODULE_LOAD, "ModuleLoad"), MODULE(153, ETW_MODULE_UNLOAD, "ModuleUnload"),
	EVENT(154, ETW_OTHER, "Loader/AssemblyLoad", assembly),
	EVENT(155, ETW_OTHER, "Loader/AssemblyUnload", assembly),
	EVENT(156, ETW_OTHER, "Loader/AppDomainLoad", app_domain),
	EVENT(157, ETW_OTHER, "Loader/AppDomainUnload", app_domain),
	EVENT(187, ETW_OTHER, "Runtime/Start", runtime_start),
	EVENT(190, ETW_OTHER, "Method/ILToNativeMap", il_map),
	EVENT(200, ETW_OTHER, "GarbageCollection/IncreaseMemoryPressure", memory_pressure),
	EVENT(201, ETW_OTHER, "GarbageCollection/DecreaseMemoryPressure", memory_pressure),
	EVENT(202, ETW_OTHER, "GC/MarkWithType", mark_type),
	CLASS(204, ETW_OTHER, RUNTIME, "GC/PerHeapHistory", .min_version = 3,
	      FIELDS(per_heap_history)),
	EVENT(205, ETW_OTHER, "GC/GlobalHeapHistory", global_heap_history),
	EVENT(208, ETW_OTHER, "GC/LOHCompact", loh_compact),
	EVENT(209, ETW_OTHER, "GC/FitBucketInfo", fit_bucket),
	EVENT(250, ETW_OTHER, "ExceptionCatch/Start", exception_block),
	CLASS(251, ETW_OTHER, RUNTIME, "ExceptionCatch/Stop", .nfields = 0),
	EVENT(252, ETW_OTHER, "ExceptionFinally/Start", exception_block),
	CLASS(253, ETW_OTHER, RUNTIME, "ExceptionFinally/Stop", .nfields = 0),
	EVENT(254, ETW_OTHER, "ExceptionFilter/Start", exception_block),
	CLASS(255, ETW_OTHER, RUNTIME, "ExceptionFilter/Stop", .nfields = 0),
	CLASS(256, ETW_OTHER, RUNTIME, "Exception/Stop", .nfields = 0),
};

#undef PROVIDER
#define PROVIDER RUNDOWN
static const struct etw_class rundown[] = {
	STACK(0), METHOD(141, ETW_METHOD_DCSTART, "DCStart", method),
	METHOD(142, ETW_METHOD_DCSTOP, "DCStop", method),
	METHOD(143, ETW_METHOD_DCSTART, "DCStartVerbose", method_verbose),
	METHOD(144, ETW_METHOD_DCSTOP, "DCStopVerbose", method_verbose),
	EVENT(145, ETW_OTHER, "Method/DCStartComplete", clr_only),
	EVENT(146, ETW_OTHER, "Method/DCStopComplete", clr_only),
	EVENT(147, ETW_OTHER, "Method/DCStartInit", clr_only),
	EVENT(148, ETW_OTHER, "Method/DCStopInit", clr_only),
	EVENT(149, ETW_OTHER, "Method/ILToNativeMapDCStart", il_map),
	EVENT(150, ETW_OTHER, "Method/ILToNativeMapDCStop", il_map),
	EVENT(151, ETW_OTHER, "Loader/DomainModuleDCStart", domain_module),
	EVENT(152, ETW_OTHER, "Loader/DomainModuleDCStop", domain_module),
	MODULE(153, ETW_MODULE_DCSTART, "ModuleDCStart"),
	MODULE(154, ETW_MODULE_DCSTOP, "ModuleDCStop"),
	EVENT(155, ETW_OTHER, "Loader/AssemblyDCStart", assembly),
	EVENT(156, ETW_OTHER, "Loader/AssemblyDCStop", assembly),
	EVENT(157, ETW_OTHER, "Loader/AppDomainDCStart", app_domain),
	EVENT(158, ETW_OTHER, "Loader/AppDomainDCStop", app_domain),
	EVENT(187, ETW_OTHER, "Runtime/Start", runtime_start),
};

#undef PROVIDER
#define PROVIDER PRIVATE
#define BINDING(key, called) EVENT(key, ETW_OTHER, "Binding/" called, binding)
static const struct etw_class private[] = {
	EVENT(2, ETW_OTHER, "GC/Settings", settings),
	CLASS(4, ETW_OTHER, PRIVATE, "GC/PerHeapHistory", .min_version = 2,
	      FIELDS(private_heap_history)),
	EVENT(5, ETW_OTHER, "GC/GlobalHeapHistory", private_history),
	EVENT(7, ETW_OTHER, "GC/MarkStackRoots", private_mark),
	EVENT(8, ETW_OTHER, "GC/MarkFinalizeQueueRoots", private_mark),
	EVENT(9, ETW_OTHER, "GC/MarkHandles", private_mark),
	EVENT(10, ETW_OTHER, "GC/MarkCards", private_mark),
	BINDING(159, "BindingPolicyPhaseStart"), BINDING(160, "BindingPolicyPhaseStop"),
	BINDING(161, "NgenPhaseStart"), BINDING(162, "NgenPhaseStop"),
	BINDING(163, "LoopupAndProbingPhaseStart"),      /* sic */
	BINDING(164, "LookupAndProbingPhaseStop"),
	BINDING(165, "LoaderPhaseStart"), BINDING(166, "LoaderPhaseStop"),
	BINDING(167, "BindingPhaseStart"), BINDING(168, "BindingPhaseStop"),
	BINDING(169, "BindingDownloadPhaseStart"), BINDING(170, "BindingDownloadPhaseStop"),
	BINDING(171, "LoaderAssemblyInitPhaseStart"), BINDING(172, "LoaderAssemblyInitPhaseStop"),
	BINDING(173, "LoaderMappingPhaseStart"), BINDING(174, "LoaderMappingPhaseStop"),
	BINDING(175, "LoaderDeliverEventPhaseStart"), BINDING(176, "LoaderDeliverEventsPhaseStop"),
	EVENT(188, ETW_OTHER, "NgenBinder/NgenBind", ngen_bind),
	EVENT(196, ETW_OTHER, "Binding/FusionMessage", fusion),
};

const struct etw_table etw_clr_tables[] = {
	{CLR_GUID, TABLE(ETW_MANIFEST, RUNTIME, runtime)},
	{CLR_RUNDOWN_GUID, TABLE(ETW_MANIFEST, RUNDOWN, rundown)},
	{CLR_PRIVATE_GUID, TABLE(ETW_MANIFEST, PRIVATE, private)},
	{.nclasses = 0},
};
