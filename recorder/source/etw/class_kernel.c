/*
 * Kernel events: processes, threads, images, samples and stacks; disk, files and memory.
 *
 * Keys are opcodes. Layouts: MOF classes of "NT Kernel Logger" (docs, ETW); checked on a trace of
 * Windows 8, except for context switches, ReadyThread, virtual memory, page faults, system calls,
 * interrupts, DPCs, drivers and operations on files.
 *
 * Names are PerfView's, also where the MOF's differ (Memory/GuardMemory, CreateDispostion), and so
 * is the choice of events with stacks (TraceEvent, KernelTraceEventParser and TraceEventSession).
 */
#include "source/etw/tables_private.h"

#define KERNEL "Windows Kernel"

static const struct etw_field header[] = {
	F("BufferSize", ETW_U32), F("Version", ETW_U32), F("ProviderVersion", ETW_U32),
	F("NumberOfProcessors", ETW_U32), F("EndTime", ETW_FILETIME), F("TimerResolution", ETW_U32),
	F("MaxFileSize", ETW_U32), F("LogFileMode", ETW_U32), F("BuffersWritten", ETW_U32),
	F("StartBuffers", ETW_U32), F("PointerSize", ETW_U32), F("EventsLost", ETW_U32),
	F("CPUSpeed", ETW_U32), F(NULL, ETW_POINTER), F(NULL, ETW_POINTER),
	F("UtcOffsetMinutes", ETW_I32),
	F(NULL, ETW_BYTES, .n = 168),         /* the rest of TIME_ZONE_INFORMATION */
	F(NULL, ETW_U32),                     /* padding to a multiple of 8 */
	F("BootTime", ETW_FILETIME), F("PerfFreq", ETW_U64), F("StartTime", ETW_FILETIME),
	F("ReservedFlags", ETW_U32), F("BuffersLost", ETW_U32), F("SessionName", ETW_UTF16Z),
	F("LogFileName", ETW_UTF16Z),
};

static const struct etw_field extension[] = {
	F("GroupMask1", ETW_U32), F("GroupMask2", ETW_U32), F("GroupMask3", ETW_U32),
	F("GroupMask4", ETW_U32), F("GroupMask5", ETW_U32), F("GroupMask6", ETW_U32),
	F("GroupMask7", ETW_U32), F("GroupMask8", ETW_U32), F("KernelEventVersion", ETW_U32),
};

static const struct etw_class event_trace[] = {
	CLASS(0, ETW_HEADER, KERNEL, "EventTrace", FIELDS(header)),
	CLASS(5, ETW_OTHER, KERNEL, "EventTrace/Extension", FIELDS(extension)),
	CLASS(8, ETW_OTHER, KERNEL, "EventTrace/RundownComplete", .nfields = 0),
	CLASS(32, ETW_OTHER, KERNEL, "EventTrace/EndExtension", FIELDS(extension)),
};

/* ---- processes and threads ------------------------------------------------------------------- */

static const struct etw_field process[] = {
	[AT_PROCESS_KEY] = F("UniqueProcessKey", ETW_POINTER),
	[AT_PROCESS_PID] = F("ProcessID", ETW_U32),
	[AT_PROCESS_PARENT] = F("ParentID", ETW_U32),
	F("SessionID", ETW_I32),
	[AT_PROCESS_EXIT] = F("ExitStatus", ETW_I32),
	F("PageDirectoryBase", ETW_POINTER, .from = 3),
	[AT_PROCESS_FLAGS] = F("Flags", ETW_X32, .from = 4),
	[AT_PROCESS_SID] = F("UserSID", ETW_WBEM_SID),
	[AT_PROCESS_IMAGE] = F("ImageFileName", ETW_UTF8Z),
	[AT_PROCESS_COMMAND_LINE] = F("CommandLine", ETW_UTF16Z),
	F("PackageFullName", ETW_UTF16Z, .from = 4),
	[AT_PROCESS_APPLICATION] = F("ApplicationID", ETW_UTF16Z, .from = 4),
};

static const struct etw_field process_counters[] = {
	F("ProcessID", ETW_U32), F("MemoryCount", ETW_U32), F("HandleCount", ETW_U32),
	F(NULL, ETW_U32), F("PeakVirtualSize", ETW_SIZE), F("PeakWorkingSetSize", ETW_SIZE),
	F("PeakPagefileUsage", ETW_SIZE), F("QuotaPeakPagedPoolUsage", ETW_SIZE),
	F("QuotaPeakNonPagedPoolUsage", ETW_SIZE), F("VirtualSize", ETW_SIZE),
	F("WorkingSetSize", ETW_SIZE), F("PagefileUsage", ETW_SIZE),
	F("QuotaPagedPoolUsage", ETW_SIZE), F("QuotaNonPagedPoolUsage", ETW_SIZE),
	F("PrivatePageCount", ETW_SIZE),
};

static const struct etw_field image[] = {
	[AT_IMAGE_BASE] = F("ImageBase", ETW_POINTER),
	[AT_IMAGE_BYTES] = F("ImageSize", ETW_SIZE),
	[AT_IMAGE_PID] = F("ProcessID", ETW_U32),
	F("ImageChecksum", ETW_I32),
	[AT_IMAGE_TIMESTAMP] = F("TimeDateStamp", ETW_I32),
	[AT_IMAGE_SIGNATURE_LEVEL] = F("SignatureLevel", ETW_U8, .from = 3),
	F("SignatureType", ETW_U8, .from = 3), F(NULL, ETW_U16, .from = 3),
	F(NULL, ETW_U32, .to = 2),
	[AT_IMAGE_DEFAULT_BASE] = F("DefaultBase", ETW_POINTER),
	F(NULL, ETW_BYTES, .n = 16),
	[AT_IMAGE_PATH] = F("FileName", ETW_UTF16Z),
};

#define PROCESS(key, what, ...) \
	CLASS(key, what, KERNEL, "Process/" __VA_ARGS__, .min_version = 2, FIELDS(process), \
	      .topic = ETW_TOPIC_PROCESS, .flag = ETW_FLAG_PROCESS)
#define IMAGE(key, what, ...) \
	CLASS(key, what, KERNEL, "Image/" __VA_ARGS__, .min_version = 2, FIELDS(image), \
	      .topic = ETW_TOPIC_IMAGE, .flag = ETW_FLAG_IMAGE)
static const struct etw_class processes[] = {
	PROCESS(1, ETW_PROCESS_START, "Start", .has_stack = true),
	PROCESS(2, ETW_PROCESS_STOP, "Stop"),
	PROCESS(3, ETW_PROCESS_DCSTART, "DCStart", .describes = true),
	PROCESS(4, ETW_PROCESS_DCSTOP, "DCStop", .describes = true),
	/* Group 3, not 20, in files; sessions want its stack by this GUID too. */
	IMAGE(10, ETW_IMAGE_LOAD, "Load", .has_stack = true),
	CLASS(32, ETW_OTHER, KERNEL, "Process/PerfCtr", .min_version = 2, FIELDS(process_counters),
	      .flag = ETW_FLAG_PROCESS_COUNTERS),
	CLASS(33, ETW_OTHER, KERNEL, "Process/PerfCtrRundown", .min_version = 2,
	      FIELDS(process_counters), .flag = ETW_FLAG_PROCESS_COUNTERS),
	PROCESS(39, ETW_PROCESS_DEFUNCT, "Defunct", .describes = true),
};

static const struct etw_field address[] = {F("ImageBase", ETW_POINTER)};

static const struct etw_class images[] = {
	IMAGE(2, ETW_IMAGE_UNLOAD, "Unload"),
	IMAGE(3, ETW_IMAGE_DCSTART, "DCStart", .describes = true),
	IMAGE(4, ETW_IMAGE_DCSTOP, "DCStop", .describes = true), IMAGE(10, ETW_IMAGE_LOAD, "Load"),
	CLASS(33, ETW_OTHER, "MSNT_SystemTrace", "Image/KernelBase", FIELDS(address)),
	CLASS(34, ETW_HYPERCALL_PAGE, "MSNT_SystemTrace", "Image/HypercallPage", FIELDS(address),
	      .describes = true),
};

static const struct etw_field thread[] = {
	[AT_THREAD_PID] = F("ProcessID", ETW_U32),
	[AT_THREAD_TID] = F("ThreadID", ETW_U32),
	F("StackBase", ETW_POINTER), F("StackLimit", ETW_POINTER),
	F("UserStackBase", ETW_POINTER), F("UserStackLimit", ETW_POINTER),
	F("StartAddr", ETW_POINTER),          /* PerfView: the affinity, from version 3 on */
	F("Win32StartAddr", ETW_POINTER), F("TebBase", ETW_POINTER), F("SubProcessTag", ETW_U32),
	F("BasePriority", ETW_U8, .from = 3), F("PagePriority", ETW_U8, .from = 3),
	F("IoPriority", ETW_U8, .from = 3), F("ThreadFlags", ETW_U8, .from = 3),
	[AT_THREAD_NAME] = F("ThreadName", ETW_UTF16Z, .from = 3),
};

static const struct etw_field thread_name[] = {
	F("ProcessID", ETW_U32), F("ThreadID", ETW_U32), F("ThreadName", ETW_UTF16Z),
};

static const struct etw_field cswitch[] = {
	[AT_CSWITCH_NEW_TID] = F("NewThreadID", ETW_U32),
	[AT_CSWITCH_OLD_TID] = F("OldThreadID", ETW_U32),
	F("NewThreadPriority", ETW_I8), F("OldThreadPriority", ETW_I8),
	F("PreviousCState", ETW_U8), F(NULL, ETW_U8),
	[AT_CSWITCH_OLD_WAIT_REASON] = F("OldThreadWaitReason", ETW_I8),
	F("OldThreadWaitMode", ETW_I8),
	[AT_CSWITCH_OLD_STATE] = F("OldThreadState", ETW_I8),
	F("OldThreadWaitIdealProcessor", ETW_U8),
	F("NewThreadWaitTime", ETW_U32),      /* in clock interrupts */
};

static const struct etw_field ready[] = {
	[AT_READY_TID] = F("AwakenedThreadID", ETW_U32),
	F("AdjustReason", ETW_U8), F("AdjustIncrement", ETW_I8),
	[AT_READY_FLAGS] = F("Flags", ETW_X8),
};

#define THREAD(key, what, ...) \
	CLASS(key, what, KERNEL, "Thread/" __VA_ARGS__, .min_version = 2, FIELDS(thread), \
	      .topic = ETW_TOPIC_THREAD, .flag = ETW_FLAG_THREAD)
static const struct etw_class threads[] = {
	THREAD(1, ETW_THREAD_START, "Start", .has_stack = true),
	THREAD(2, ETW_THREAD_STOP, "Stop"),
	THREAD(3, ETW_THREAD_DCSTART, "DCStart", .describes = true),
	THREAD(4, ETW_THREAD_DCSTOP, "DCStop", .describes = true),
	CLASS(36, ETW_CSWITCH, KERNEL, "Thread/CSwitch", .min_version = 2, FIELDS(cswitch),
	      TID_AT(0, 0), .has_stack = true, .flag = ETW_FLAG_CSWITCH),
	CLASS(50, ETW_READY_THREAD, KERNEL, "Dispatcher/ReadyThread", .min_version = 2,
	      FIELDS(ready), .has_stack = true, .flag = ETW_FLAG_DISPATCHER),
	CLASS(72, ETW_OTHER, KERNEL, "Thread/SetName", .min_version = 2, FIELDS(thread_name),
	      .flag = ETW_FLAG_THREAD),
};

/* ---- samples and stacks ---------------------------------------------------------------------- */

static const struct etw_field sample[] = {
	[AT_SAMPLE_IP] = F("InstructionPointer", ETW_POINTER),
	[AT_SAMPLE_TID] = F("ThreadID", ETW_U32),
	F("Count", ETW_U16),
	[AT_SAMPLE_FLAGS] = F("Flags", ETW_X8),
	F("Rank", ETW_U8),
	F("ExecutingDPC", ETW_BIT, .n = AT_SAMPLE_FLAGS, .shift = 0, .width = 1),
	F("ExecutingISR", ETW_BIT, .n = AT_SAMPLE_FLAGS, .shift = 1, .width = 1),
	F("Priority", ETW_BITS, .n = AT_SAMPLE_FLAGS, .shift = 3, .width = 5),
};

static const struct etw_field pmc_sample[] = {
	F("InstructionPointer", ETW_POINTER), F("ThreadID", ETW_U32), F("ProfileSource", ETW_U16),
};

static const struct etw_field interval[] = {
	[AT_INTERVAL_SOURCE] = F("SampleSource", ETW_U32),
	[AT_INTERVAL_NEW] = F("NewInterval", ETW_U32),
	F("OldInterval", ETW_U32), F("SourceName", ETW_UTF16Z),
};

static const struct etw_field call_enter[] = {F("SysCallAddress", ETW_POINTER)};
static const struct etw_field call_exit[] = {F("SysCallNtStatus", ETW_X32)};
static const struct etw_field dpc[] = {F("InitialTime", ETW_SINCE), F("Routine", ETW_POINTER)};

static const struct etw_field isr[] = {
	F("InitialTime", ETW_SINCE), F("Routine", ETW_POINTER), F("ReturnValue", ETW_U8),
	F("Vector", ETW_U8), F(NULL, ETW_U16), F("Message", ETW_U32),
};

#define PERF(key, called, layout, ...) \
	CLASS(key, ETW_OTHER, KERNEL, "PerfInfo/" called, .min_version = 2, FIELDS(layout), \
	      __VA_ARGS__)
static const struct etw_class perf_info[] = {
	CLASS(46, ETW_SAMPLE, KERNEL, "PerfInfo/Sample", .min_version = 2, FIELDS(sample),
	      TID_AT(0, 1), .has_stack = true, .flag = ETW_FLAG_PROFILE),
	CLASS(47, ETW_PMC_SAMPLE, KERNEL, "PerfInfo/PMCSample", .min_version = 2,
	      FIELDS(pmc_sample), TID_AT(0, 1), .has_stack = true),
	PERF(50, "ISR", isr, .flag = ETW_FLAG_INTERRUPT),        /* signaled by a message */
	PERF(51, "SysClEnter", call_enter, .flag = ETW_FLAG_SYSTEM_CALL),
	PERF(52, "SysClExit", call_exit, .flag = ETW_FLAG_SYSTEM_CALL, .has_stack = true),
	PERF(66, "ThreadedDPC", dpc, .flag = ETW_FLAG_DPC),
	PERF(67, "ISR", isr, .flag = ETW_FLAG_INTERRUPT),
	PERF(68, "DPC", dpc, .flag = ETW_FLAG_DPC),
	PERF(69, "TimerDPC", dpc, .flag = ETW_FLAG_DPC),
	CLASS(72, ETW_SAMPLE_SET, KERNEL, "PerfInfo/SetInterval", FIELDS(interval)),
	CLASS(73, ETW_SAMPLE_START, KERNEL, "PerfInfo/CollectionStart", FIELDS(interval),
	      .describes = true),
	CLASS(74, ETW_SAMPLE_STOP, KERNEL, "PerfInfo/CollectionEnd", FIELDS(interval),
	      .describes = true),
};

static const struct etw_field stack[] = {
	F("EventTimeStamp", ETW_U64), F("StackProcess", ETW_U32), F("StackThread", ETW_U32),
	F("Stack", ETW_ADDRESSES),
};

static const struct etw_field stack_use[] = {
	F("EventTimeStamp", ETW_U64), F("StackProcess", ETW_U32), F("StackThread", ETW_U32),
	F("StackKey", ETW_POINTER),
};

static const struct etw_field stack_key[] = {
	F("StackKey", ETW_POINTER), F("Stack", ETW_ADDRESSES),
};

#define STACK(key, what, called, layout) \
	CLASS(key, what, KERNEL, "StackWalk/" called, FIELDS(layout), .topic = ETW_TOPIC_STACK, \
	      .describes = true)
static const struct etw_class stacks[] = {
	STACK(32, ETW_STACK, "Stack", stack),
	STACK(35, ETW_STACK_KEY_DELETE, "KeyDelete", stack_key),
	STACK(36, ETW_STACK_KEY_RUNDOWN, "KeyRundown", stack_key),
	STACK(37, ETW_STACK_KEY_KERNEL, "StackKeyKernel", stack_use),
	STACK(38, ETW_STACK_KEY_USER, "StackKeyUser", stack_use),
};

/* ---- disk, files, memory --------------------------------------------------------------------- */

static const struct etw_field disk[] = {
	[AT_DISK_NUMBER] = F("DiskNumber", ETW_U32),
	[AT_DISK_FLAGS] = F("IrpFlags", ETW_X32),
	F("TransferSize", ETW_U32), F(NULL, ETW_U32), F("ByteOffset", ETW_U64),
	[AT_DISK_FILE] = F("FileKey", ETW_NAME_KEY),
	F("Irp", ETW_POINTER), F("HighResResponseTime", ETW_TICKS),
	F("IssuingThreadId", ETW_U32, .from = 3),
	F("Priority", ETW_BITS, .n = AT_DISK_FLAGS, .shift = 17, .width = 3),
};

static const struct etw_field flush[] = {
	[AT_DISK_NUMBER] = F("DiskNumber", ETW_U32),
	F("IrpFlags", ETW_X32), F("HighResResponseTime", ETW_TICKS), F("Irp", ETW_POINTER),
	F("IssuingThreadId", ETW_U32, .from = 3),
};

static const struct etw_field disk_init[] = {
	F("Irp", ETW_POINTER), F("IssuingThreadId", ETW_U32, .from = 3),
};

static const struct etw_field driver_call[] = {
	F("MajorFunction", ETW_U32), F("MinorFunction", ETW_U32), F("RoutineAddr", ETW_POINTER),
	F("FileKey", ETW_NAME_KEY), F("Irp", ETW_POINTER), F("UniqMatchID", ETW_U32),
};

static const struct etw_field driver_return[] = {
	F("Irp", ETW_POINTER), F("UniqMatchID", ETW_U32),
};

static const struct etw_field driver_completion[] = {
	F("Routine", ETW_POINTER), F("IrpPtr", ETW_POINTER), F("UniqMatchID", ETW_U32),
};

static const struct etw_field driver_complete[] = {
	F("RoutineAddr", ETW_POINTER), F("Irp", ETW_POINTER), F("UniqMatchID", ETW_U32),
};

#define DISK(key, what, called, ...) \
	CLASS(key, what, KERNEL, "DiskIO/" called, .min_version = 2, __VA_ARGS__)
#define DISK_END(key, what, called, layout, ...) \
	DISK(key, what, called, FIELDS(layout), .flag = ETW_FLAG_DISK_IO, __VA_ARGS__)
#define DISK_START(key, what, called) \
	DISK(key, what, called, FIELDS(disk_init), TID_AT(0, 1), .topic = ETW_TOPIC_DISK_START, \
	     .has_stack = true, .flag = ETW_FLAG_DISK_IO_INIT)
#define DRIVER(key, called, layout) \
	CLASS(key, ETW_OTHER, KERNEL, "DiskIO/Driver" called, FIELDS(layout), \
	      .flag = ETW_FLAG_DRIVER)
static const struct etw_class disks[] = {
	DISK_END(10, ETW_DISK_READ, "Read", disk, TID_AT(32, 2)),
	DISK_END(11, ETW_DISK_WRITE, "Write", disk, TID_AT(32, 2)),
	DISK_START(12, ETW_DISK_READ_INIT, "ReadInit"),
	DISK_START(13, ETW_DISK_WRITE_INIT, "WriteInit"),
	DISK_END(14, ETW_DISK_FLUSH, "FlushBuffers", flush, TID_AT(16, 1)),
	DISK_START(15, ETW_DISK_FLUSH_INIT, "FlushInit"),
	DRIVER(34, "MajorFunctionCall", driver_call),
	DRIVER(35, "MajorFunctionReturn", driver_return),
	DRIVER(37, "CompletionRoutine", driver_completion),
	DRIVER(52, "CompleteRequest", driver_complete),
	DRIVER(53, "CompleteRequestReturn", driver_return),
};

static const struct etw_field file[] = {
	[AT_FILE_KEY] = F("FileKey", ETW_POINTER),
	[AT_FILE_PATH] = F("FileName", ETW_UTF16Z),
};

/* The thread stands behind the IRP in version 2, as a pointer, and behind all keys in version 3. */
#define THREAD_2 F(NULL, ETW_POINTER, .to = 2)
#define THREAD_3 F(NULL, ETW_U32, .from = 3)
#define OPEN_OPTIONS 4
static const struct etw_field file_open[] = {
	F("IrpPtr", ETW_POINTER), THREAD_2,
	[AT_OPEN_OBJECT] = F("FileObject", ETW_POINTER),
	THREAD_3,
	[OPEN_OPTIONS] = F(NULL, ETW_X32),
	F("FileAttributes", ETW_X32), F("ShareAccess", ETW_X32),
	[AT_OPEN_PATH] = F("FileName", ETW_UTF16Z),
	F("CreateOptions", ETW_BITS, .n = OPEN_OPTIONS, .width = 24),
	F("CreateDispostion", ETW_BITS, .n = OPEN_OPTIONS, .shift = 24, .width = 8),
};

static const struct etw_field file_simple[] = {
	F("IrpPtr", ETW_POINTER), THREAD_2,
	[AT_CLOSE_OBJECT] = F("FileObject", ETW_NAME_KEY),
	F("FileKey", ETW_NAME_KEY), THREAD_3,
};

static const struct etw_field file_transfer[] = {
	F("Offset", ETW_U64), F("IrpPtr", ETW_POINTER), THREAD_2, F("FileObject", ETW_NAME_KEY),
	F("FileKey", ETW_NAME_KEY), THREAD_3, F("IoSize", ETW_U32), F("IoFlags", ETW_U32),
};

static const struct etw_field file_info[] = {
	F("IrpPtr", ETW_POINTER), THREAD_2, F("FileObject", ETW_NAME_KEY),
	F("FileKey", ETW_NAME_KEY), F("ExtraInfo", ETW_POINTER), THREAD_3, F("InfoClass", ETW_U32),
};

static const struct etw_field file_directory[] = {
	F("IrpPtr", ETW_POINTER), THREAD_2,
	F("FileObject", ETW_NAME_KEY, .n = ETW_NAMES_DIRECTORY),
	F("FileKey", ETW_NAME_KEY, .n = ETW_NAMES_DIRECTORY), THREAD_3, F("Length", ETW_U32),
	F("InfoClass", ETW_U32), F("FileIndex", ETW_U32), F("FileName", ETW_UTF16Z),
};

static const struct etw_field file_end[] = {
	F("IrpPtr", ETW_POINTER), F("ExtraInfo", ETW_POINTER), F("NtStatus", ETW_X32),
};

static const struct etw_field file_map[] = {
	F("ViewBase", ETW_POINTER), F("FileKey", ETW_NAME_KEY), F("MiscInfo", ETW_X64),
	F("ViewSize", ETW_SIZE), F("ByteOffset", ETW_U64, .from = 3), F("ProcessID", ETW_U32),
};

#define FILE_NAME(key, what, called, ...) \
	CLASS(key, what, KERNEL, "FileIO/" called, FIELDS(file), .topic = ETW_TOPIC_FILE, \
	      .flag = ETW_FLAG_DISK_FILE_IO, __VA_ARGS__)
#define FILE_MAP(key, called, ...) \
	CLASS(key, ETW_OTHER, KERNEL, "FileIO/" called, .min_version = 2, FIELDS(file_map), \
	      .flag = ETW_FLAG_VAMAP, __VA_ARGS__)
#define FILE_IO_TOPIC(key, called, layout, bytes, pointers, about) \
	CLASS(key, ETW_OTHER, KERNEL, "FileIO/" called, .min_version = 2, FIELDS(layout), \
	      TID_AT(bytes, pointers), .tid_version = 3, .has_stack = true, .topic = (about), \
	      .flag = ETW_FLAG_FILE_IO_INIT)
#define FILE_IO(key, called, layout, bytes, pointers) \
	FILE_IO_TOPIC(key, called, layout, bytes, pointers, ETW_TOPIC_OTHER)
static const struct etw_class files[] = {
	FILE_NAME(0, ETW_FILE_NAME, "Name", .describes = true),
	FILE_NAME(32, ETW_FILE_CREATE, "FileCreate", .describes = false),
	FILE_NAME(35, ETW_FILE_DELETE, "FileDelete", .describes = false),
	FILE_NAME(36, ETW_FILE_RUNDOWN, "FileRundown", .describes = true),
	FILE_MAP(37, "MapFile", .has_stack = true), FILE_MAP(38, "UnmapFile", .describes = false),
	FILE_MAP(39, "MapFileDCStart", .describes = true),
	FILE_MAP(40, "MapFileDCStop", .describes = true),
	FILE_IO_TOPIC(64, "Create", file_open, 0, 2, ETW_TOPIC_OPEN),
	FILE_IO(65, "Cleanup", file_simple, 0, 3),
	FILE_IO_TOPIC(66, "Close", file_simple, 0, 3, ETW_TOPIC_CLOSE),
	FILE_IO(67, "Read", file_transfer, 8, 3), FILE_IO(68, "Write", file_transfer, 8, 3),
	FILE_IO(69, "SetInfo", file_info, 0, 4), FILE_IO(70, "Delete", file_info, 0, 4),
	FILE_IO(71, "Rename", file_info, 0, 4), FILE_IO(72, "DirEnum", file_directory, 0, 3),
	FILE_IO(73, "Flush", file_simple, 0, 3), FILE_IO(74, "QueryInfo", file_info, 0, 4),
	FILE_IO(75, "FSControl", file_info, 0, 4),
	CLASS(76, ETW_OTHER, KERNEL, "FileIO/OperationEnd", .min_version = 2, FIELDS(file_end),
	      .flag = ETW_FLAG_FILE_IO),
	FILE_IO(77, "DirNotify", file_directory, 0, 3),
};

static const struct etw_field hard_fault[] = {
	F("InitialTime", ETW_SINCE), F("ReadOffset", ETW_U64), F("VirtualAddress", ETW_POINTER),
	F("FileKey", ETW_NAME_KEY), F("ThreadID", ETW_U32), F("ByteCount", ETW_U32),
};

static const struct etw_field fault[] = {
	F("VirtualAddress", ETW_POINTER), F("ProgramCounter", ETW_POINTER),
};

static const struct etw_field virtual[] = {
	F("BaseAddr", ETW_POINTER), F("Length", ETW_SIZE), F("ProcessID", ETW_U32),
	F("Flags", ETW_X32),
};

#define FAULT(key, called) \
	CLASS(key, ETW_OTHER, KERNEL, "Memory/" called, FIELDS(fault), .has_stack = true, \
	      .flag = ETW_FLAG_PAGE_FAULTS)
#define VIRTUAL(key, called) \
	CLASS(key, ETW_OTHER, KERNEL, "VirtualMem/" called, FIELDS(virtual), \
	      .topic = ETW_TOPIC_MEMORY, .has_stack = true, .flag = ETW_FLAG_VIRTUAL_ALLOC)
static const struct etw_class memory[] = {
	FAULT(10, "TransitionFault"), FAULT(11, "DemandZeroFault"), FAULT(12, "CopyOnWrite"),
	FAULT(13, "GuardMemory"), FAULT(14, "HardMemory"), FAULT(15, "AccessViolation"),
	CLASS(32, ETW_HARD_FAULT, KERNEL, "Memory/HardFault", FIELDS(hard_fault), TID_AT(16, 2),
	      .has_stack = true, .flag = ETW_FLAG_HARD_FAULTS),
	VIRTUAL(98, "Alloc"), VIRTUAL(99, "Free"),
};

const struct etw_table etw_kernel_tables[] = {
	{PERF_GUID, TABLE(ETW_CLASSIC, KERNEL, perf_info)},
	{STACK_GUID, TABLE(ETW_CLASSIC, KERNEL, stacks)},
	{THREAD_GUID, TABLE(ETW_CLASSIC, KERNEL, threads)},
	{MEMORY_GUID, TABLE(ETW_CLASSIC, KERNEL, memory)},
	{DISK_GUID, TABLE(ETW_CLASSIC, KERNEL, disks)},
	{PROCESS_GUID, TABLE(ETW_CLASSIC, KERNEL, processes)},
	{IMAGE_GUID, TABLE(ETW_CLASSIC, KERNEL, images)},
	{FILE_GUID, TABLE(ETW_CLASSIC, KERNEL, files)},
	{EVENT_TRACE_GUID, TABLE(ETW_CLASSIC, KERNEL, event_trace)},
	{.nclasses = 0},
};
