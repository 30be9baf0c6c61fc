/*
 * The .NET runtime's private provider: assembly binding, and details of collections.
 *
 * Keys are event ids. Layouts: ClrEtwAll.man of the .NET runtime; checked on a trace of .NET 4.5.
 */
#include "source/etw/tables_private.h"

#define PRIVATE "Microsoft-Windows-DotNETRuntimePrivate"

static const struct etw_field settings[] = {
	F("SegmentSize", ETW_U64), F("LargeObjectSegmentSize", ETW_U64), F("ServerGC", ETW_BOOL32),
	F("ClrInstanceID", ETW_U16, .from = 1),
};

static const struct etw_field global_history[] = {
	F("FinalYoungestDesired", ETW_U64),
	F("NumHeaps", ETW_I32),
	F("CondemnedGeneration", ETW_I32),
	F("Gen0ReductionCount", ETW_I32),
	F("Reason", ETW_I32),
	F("GlobalMechanisms", ETW_I32),
	F("ClrInstanceID", ETW_U16, .from = 1),
};

static const struct etw_field mark[] = {F("HeapNum", ETW_U32),
					F("ClrInstanceID", ETW_U16, .from = 1)};

static const struct etw_field binding[] = {
	F("AppDomainID", ETW_U32), F("LoadContextID", ETW_U32), F("FromLoaderCache", ETW_U32),
	F("DynamicLoad", ETW_U32), F("AssemblyCodebase", ETW_UTF16Z), F("AssemblyName", ETW_UTF16Z),
	F("ClrInstanceID", ETW_U16),
};

static const struct etw_field ngen_bind[] = {
	F("ClrInstanceID", ETW_U16), F("BindingID", ETW_U64), F("ReasonCode", ETW_U32),
	F("AssemblyName", ETW_UTF16Z),
};

static const struct etw_field fusion[] = {
	F("ClrInstanceID", ETW_U16), F("Prepend", ETW_BOOL32), F("Message", ETW_UTF16Z),
};

#define EVENT(key, called, layout) CLASS(key, ETW_OTHER, PRIVATE, called, FIELDS(layout))
#define BINDING(key, called) EVENT(key, "Binding/" called, binding)
static const struct etw_class private[] = {
	EVENT(2, "GC/Settings", settings),
	CLASS(4, ETW_OTHER, PRIVATE, "GC/PerHeapHistory", .nfields = 0),
	EVENT(5, "GC/GlobalHeapHistory", global_history),
	EVENT(7, "GC/MarkStackRoots", mark),
	EVENT(8, "GC/MarkFinalizeQueueRoots", mark),
	EVENT(9, "GC/MarkHandles", mark),
	EVENT(10, "GC/MarkCards", mark),
	BINDING(159, "BindingPolicyPhaseStart"),
	BINDING(160, "BindingPolicyPhaseStop"),
	BINDING(161, "NgenPhaseStart"),
	BINDING(162, "NgenPhaseStop"),
	BINDING(163, "LoopupAndProbingPhaseStart"),      /* sic */
	BINDING(164, "LookupAndProbingPhaseStop"),
	BINDING(165, "LoaderPhaseStart"),
	BINDING(166, "LoaderPhaseStop"),
	BINDING(167, "BindingPhaseStart"),
	BINDING(168, "BindingPhaseStop"),
	BINDING(169, "BindingDownloadPhaseStart"),
	BINDING(170, "BindingDownloadPhaseStop"),
	BINDING(171, "LoaderAssemblyInitPhaseStart"),
	BINDING(172, "LoaderAssemblyInitPhaseStop"),
	BINDING(173, "LoaderMappingPhaseStart"),
	BINDING(174, "LoaderMappingPhaseStop"),
	BINDING(175, "LoaderDeliverEventPhaseStart"),
	BINDING(176, "LoaderDeliverEventsPhaseStop"),
	EVENT(188, "NgenBinder/NgenBind", ngen_bind),
	EVENT(196, "Binding/FusionMessage", fusion),
};

const struct etw_table etw_clr_private_tables[] = {
	{GUID(0x763fd754, 0x7086, 0x4dfe, 0x95, 0xeb, 0xc0, 0x1a, 0x46, 0xfa, 0xf4, 0xca),
	 TABLE(ETW_MANIFEST, PRIVATE, private)},
	{.nclasses = 0},
};
