/*
 * The .NET runtime and its rundown: collections, suspensions, allocations, methods, modules,
 * stacks.
 *
 * Keys are event ids; each provider has its own. Layouts: design page
 * etl-format.md section 9, and ClrEtwAll.man of the .NET runtime.
 */
#include "source/etw/tables_private.h"

#define RUNTIME "Microsoft-Windows-DotNETRuntime"
#define RUNDOWN "Microsoft-Windows-DotNETRuntimeRundown"

#define CLR F("ClrInstanceID", ETW_U16)

static const struct etw_field gc_start[] = {
	[AT_GC_START_COUNT] = F("Count", ETW_U32),
	[AT_GC_START_GENERATION] = F("Depth", ETW_U32, .from = 1),
	[AT_GC_START_REASON] = F("Reason", ETW_U32),
	[AT_GC_START_TYPE] = F("Type", ETW_U32, .from = 1),
	[AT_GC_START_CLR] = F("ClrInstanceID", ETW_U16, .from = 1),
	[AT_GC_START_SEQUENCE] = F("ClientSequenceNumber", ETW_U64, .from = 2),
};

static const struct etw_field gc_stop[] = {
	F("Count", ETW_U32), F("Depth", ETW_U32, .from = 1), F("ClrInstanceID", ETW_U16, .from = 1),
};

static const struct etw_field suspend_start[] = {
	F("Reason", ETW_U32, .from = 1), F("Count", ETW_U32, .from = 1),
	F("ClrInstanceID", ETW_U16, .from = 1),
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
	F("ClrInstanceID", ETW_U16, .from = 1), F("GenerationSize4", ETW_U64, .from = 2),
	F("TotalPromotedSize4", ETW_U64, .from = 2),
};

static const struct etw_field allocation_tick[] = {
	F("AllocationAmount", ETW_U32), F("AllocationKind", ETW_U32),
	F("ClrInstanceID", ETW_U16, .from = 1), F("AllocationAmount64", ETW_U64, .from = 2),
	F("TypeID", ETW_POINTER, .from = 2), F("TypeName", ETW_UTF16Z, .from = 2),
	F("HeapIndex", ETW_U32, .from = 2), F("Address", ETW_POINTER, .from = 3),
	F("ObjectSize", ETW_U64, .from = 4),
};

static const struct etw_field create_segment[] = {
	F("Address", ETW_X64), F("Size", ETW_X64), F("Type", ETW_U32),
	F("ClrInstanceID", ETW_U16, .from = 1),
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

static const struct etw_field per_heap_history[] = {
	CLR, F("FreeListAllocated", ETW_SIZE), F("FreeListRejected", ETW_SIZE),
	F("EndOfSegAllocated", ETW_SIZE), F("CondemnedAllocated", ETW_SIZE),
	F("PinnedAllocated", ETW_SIZE), F("PinnedAllocatedAdvance", ETW_SIZE),
	F("RunningFreeListEfficiency", ETW_U32), F("CondemnReasons0", ETW_U32),
	F("CondemnReasons1", ETW_U32), F("CompactMechanisms", ETW_X32),
	F("ExpandMechanisms", ETW_X32), F("HeapIndex", ETW_U32), F("ExtraGen0Commit", ETW_SIZE),
	F("Count", ETW_U32),
};

static const struct etw_field global_heap_history[] = {
	F("FinalYoungestDesired", ETW_U64), F("NumHeaps", ETW_I32),
	F("CondemnedGeneration", ETW_I32), F("Gen0ReductionCount", ETW_I32), F("Reason", ETW_I32),
	F("GlobalMechanisms", ETW_X32), F("ClrInstanceID", ETW_U16, .from = 1),
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
	F("ExceptionFlags", ETW_X16, .from = 1), F("ClrInstanceID", ETW_U16, .from = 1),
};

static const struct etw_field contention_start[] = {F("ContentionFlags", ETW_U8), CLR};
static const struct etw_field contention_stop[] = {
	F("ContentionFlags", ETW_U8), CLR, F("DurationNs", ETW_F64, .from = 1),
};

static const struct etw_field method[] = {
	[AT_METHOD_ID] = F("MethodID", ETW_U64),
	[AT_METHOD_MODULE] = F("ModuleID", ETW_U64),
	[AT_METHOD_START] = F("MethodStartAddress", ETW_X64),
	[AT_METHOD_BYTES] = F("MethodSize", ETW_U32),
	[AT_METHOD_TOKEN] = F("MethodToken", ETW_U32),
	[AT_METHOD_FLAGS] = F("MethodFlags", ETW_X32),
	[AT_METHOD_CLR_PLAIN] = F("ClrInstanceID", ETW_U16, .from = 1),
};

static const struct etw_field method_verbose[] = {
	[AT_METHOD_ID] = F("MethodID", ETW_U64),
	[AT_METHOD_MODULE] = F("ModuleID", ETW_U64),
	[AT_METHOD_START] = F("MethodStartAddress", ETW_X64),
	[AT_METHOD_BYTES] = F("MethodSize", ETW_U32),
	[AT_METHOD_TOKEN] = F("MethodToken", ETW_U32),
	[AT_METHOD_FLAGS] = F("MethodFlags", ETW_X32),
	[AT_METHOD_NAMESPACE] = F("MethodNamespace", ETW_UTF16Z),
	[AT_METHOD_NAME] = F("MethodName", ETW_UTF16Z),
	[AT_METHOD_SIGNATURE] = F("MethodSignature", ETW_UTF16Z),
	[AT_METHOD_CLR] = F("ClrInstanceID", ETW_U16, .from = 1),
	[AT_METHOD_REJIT] = F("ReJITID", ETW_U64, .from = 2),
};

static const struct etw_field jitting_started[] = {
	F("MethodID", ETW_U64), F("ModuleID", ETW_U64), F("MethodToken", ETW_U32),
	F("MethodILSize", ETW_U32), F("MethodNamespace", ETW_UTF16Z), F("MethodName", ETW_UTF16Z),
	F("MethodSignature", ETW_UTF16Z), F("ClrInstanceID", ETW_U16, .from = 1),
};

static const struct etw_field module[] = {
	[AT_MODULE_ID] = F("ModuleID", ETW_U64),
	[AT_MODULE_ASSEMBLY] = F("AssemblyID", ETW_U64),
	[AT_MODULE_FLAGS] = F("ModuleFlags", ETW_X32),
	[AT_MODULE_RESERVED] = F(NULL, ETW_U32),
	[AT_MODULE_IL_PATH] = F("ModuleILPath", ETW_UTF16Z),
	[AT_MODULE_NATIVE_PATH] = F("ModuleNativePath", ETW_UTF16Z),
	[AT_MODULE_CLR] = F("ClrInstanceID", ETW_U16, .from = 1),
	[AT_MODULE_PDB_GUID] = F("ManagedPdbSignature", ETW_GUID, .from = 2),
	[AT_MODULE_PDB_AGE] = F("ManagedPdbAge", ETW_U32, .from = 2),
	[AT_MODULE_PDB_PATH] = F("ManagedPdbBuildPath", ETW_UTF16Z, .from = 2),
	[AT_MODULE_NATIVE_PDB_GUID] = F("NativePdbSignature", ETW_GUID, .from = 2),
	[AT_MODULE_NATIVE_PDB_AGE] = F("NativePdbAge", ETW_U32, .from = 2),
	[AT_MODULE_NATIVE_PDB_PATH] = F("NativePdbBuildPath", ETW_UTF16Z, .from = 2),
};

static const struct etw_field domain_module[] = {
	F("ModuleID", ETW_U64), F("AssemblyID", ETW_U64), F("AppDomainID", ETW_U64),
	F("ModuleFlags", ETW_X32), F(NULL, ETW_U32), F("ModuleILPath", ETW_UTF16Z),
	F("ModuleNativePath", ETW_UTF16Z), F("ClrInstanceID", ETW_U16, .from = 1),
};

static const struct etw_field assembly[] = {
	F("AssemblyID", ETW_U64), F("AppDomainID", ETW_U64), F("BindingID", ETW_U64, .from = 1),
	F("AssemblyFlags", ETW_X32), F("FullyQualifiedAssemblyName", ETW_UTF16Z),
	F("ClrInstanceID", ETW_U16, .from = 1),
};

static const struct etw_field app_domain[] = {
	F("AppDomainID", ETW_U64), F("AppDomainFlags", ETW_X32), F("AppDomainName", ETW_UTF16Z),
	F("AppDomainIndex", ETW_U32, .from = 1), F("ClrInstanceID", ETW_U16, .from = 1),
};

static const struct etw_field clr_stack[] = {
	[AT_CLR_STACK_CLR] = CLR,
	[AT_CLR_STACK_GAP] = F(NULL, ETW_U16),
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

#define EVENT(key, what, called, layout) CLASS(key, what, RUNTIME, called, FIELDS(layout))
static const struct etw_class runtime[] = {
	EVENT(1, ETW_GC_START, "GC/Start", gc_start), EVENT(2, ETW_GC_STOP, "GC/Stop", gc_stop),
	EVENT(3, ETW_GC_RESTART_STOP, "GC/RestartEEStop", clr_only),
	EVENT(4, ETW_GC_HEAP_STATS, "GC/HeapStats", heap_stats),
	EVENT(5, ETW_OTHER, "GC/CreateSegment", create_segment),
	EVENT(7, ETW_GC_RESTART_START, "GC/RestartEEStart", clr_only),
	EVENT(8, ETW_GC_SUSPEND_STOP, "GC/SuspendEEStop", clr_only),
	EVENT(9, ETW_GC_SUSPEND_START, "GC/SuspendEEStart", suspend_start),
	EVENT(10, ETW_GC_ALLOCATION_TICK, "GC/AllocationTick", allocation_tick),
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
	EVENT(35, ETW_GC_TRIGGERED, "GC/Triggered", triggered),
	EVENT(50, ETW_OTHER, "ThreadPoolWorkerThread/Start", worker),
	EVENT(51, ETW_OTHER, "ThreadPoolWorkerThread/Stop", worker),
	EVENT(54, ETW_OTHER, "ThreadPoolWorkerThreadAdjustment/Sample", adjustment_sample),
	EVENT(55, ETW_OTHER, "ThreadPoolWorkerThreadAdjustment/Adjustment", adjustment),
	EVENT(57, ETW_OTHER, "ThreadPoolWorkerThread/Wait", worker),
	EVENT(80, ETW_EXCEPTION, "Exception/Start", exception),
	EVENT(81, ETW_CONTENTION_START, "Contention/Start", contention_start),
	EVENT(82, ETW_CLR_STACK, "ClrStack/Walk", clr_stack),
	EVENT(85, ETW_OTHER, "AppDomainResourceManagement/ThreadCreated", thread_created),
	EVENT(91, ETW_CONTENTION_STOP, "Contention/Stop", contention_stop),
	EVENT(141, ETW_METHOD_LOAD, "Method/Load", method),
	EVENT(142, ETW_METHOD_UNLOAD, "Method/Unload", method),
	EVENT(143, ETW_METHOD_LOAD_VERBOSE, "Method/LoadVerbose", method_verbose),
	EVENT(144, ETW_METHOD_UNLOAD_VERBOSE, "Method/UnloadVerbose", method_verbose),
	EVENT(145, ETW_OTHER, "Method/JittingStarted", jitting_started),
	EVENT(151, ETW_OTHER, "Loader/DomainModuleLoad", domain_module),
	EVENT(152, ETW_MODULE_LOAD, "Loader/ModuleLoad", module),
	EVENT(153, ETW_MODULE_UNLOAD, "Loader/ModuleUnload", module),
	EVENT(154, ETW_OTHER, "Loader/AssemblyLoad", assembly),
	EVENT(155, ETW_OTHER, "Loader/AssemblyUnload", assembly),
	EVENT(156, ETW_OTHER, "Loader/AppDomainLoad", app_domain),
	EVENT(157, ETW_OTHER, "Loader/AppDomainUnload", app_domain),
	EVENT(187, ETW_RUNTIME_START, "Runtime/Start", runtime_start),
	EVENT(190, ETW_OTHER, "Method/ILToNativeMap", il_map),
	EVENT(200, ETW_OTHER, "GarbageCollection/IncreaseMemoryPressure", memory_pressure),
	EVENT(201, ETW_OTHER, "GarbageCollection/DecreaseMemoryPressure", memory_pressure),
	EVENT(202, ETW_OTHER, "GC/MarkWithType", mark_type),
	{.key = 204, .provider = RUNTIME, .name = "GC/PerHeapHistory", .min_version = 3,
	 FIELDS(per_heap_history)},
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
#undef EVENT

#define EVENT(key, what, called, layout) CLASS(key, what, RUNDOWN, called, FIELDS(layout))
static const struct etw_class rundown[] = {
	EVENT(0, ETW_CLR_STACK, "ClrStack/Walk", clr_stack),
	EVENT(141, ETW_METHOD_DCSTART, "Method/DCStart", method),
	EVENT(142, ETW_METHOD_DCSTOP, "Method/DCStop", method),
	EVENT(143, ETW_METHOD_DCSTART_VERBOSE, "Method/DCStartVerbose", method_verbose),
	EVENT(144, ETW_METHOD_DCSTOP_VERBOSE, "Method/DCStopVerbose", method_verbose),
	EVENT(145, ETW_OTHER, "Method/DCStartComplete", clr_only),
	EVENT(146, ETW_OTHER, "Method/DCStopComplete", clr_only),
	EVENT(147, ETW_OTHER, "Method/DCStartInit", clr_only),
	EVENT(148, ETW_OTHER, "Method/DCStopInit", clr_only),
	EVENT(149, ETW_OTHER, "Method/ILToNativeMapDCStart", il_map),
	EVENT(150, ETW_OTHER, "Method/ILToNativeMapDCStop", il_map),
	EVENT(151, ETW_OTHER, "Loader/DomainModuleDCStart", domain_module),
	EVENT(152, ETW_OTHER, "Loader/DomainModuleDCStop", domain_module),
	EVENT(153, ETW_MODULE_DCSTART, "Loader/ModuleDCStart", module),
	EVENT(154, ETW_MODULE_DCSTOP, "Loader/ModuleDCStop", module),
	EVENT(155, ETW_OTHER, "Loader/AssemblyDCStart", assembly),
	EVENT(156, ETW_OTHER, "Loader/AssemblyDCStop", assembly),
	EVENT(157, ETW_OTHER, "Loader/AppDomainDCStart", app_domain),
	EVENT(158, ETW_OTHER, "Loader/AppDomainDCStop", app_domain),
	EVENT(187, ETW_RUNTIME_START, "Runtime/Start", runtime_start),
};
#undef EVENT

const struct etw_table etw_clr_tables[] = {
	{GUID(0xe13c0d23, 0xccbc, 0x4e12, 0x93, 0x1b, 0xd9, 0xcc, 0x2e, 0xee, 0x27, 0xe4),
	 TABLE(ETW_MANIFEST, RUNTIME, runtime)},
	{GUID(0xa669021c, 0xc450, 0x4609, 0xa0, 0x35, 0x5a, 0xf5, 0x9a, 0xf4, 0xdf, 0x18),
	 TABLE(ETW_MANIFEST, RUNDOWN, rundown)},
	{.nclasses = 0},
};
