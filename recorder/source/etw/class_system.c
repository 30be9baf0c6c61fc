/*
 * Kernel events about the network, the registry and local procedure calls; about the machine at
 * the end of a trace; and what merging adds: system paths, volumes, identities of images, schemas.
 *
 * Keys are opcodes. Layouts: MOF classes TcpIp_V2, UdpIp_V2, Registry_V2, ALPC, SplitIo and
 * SystemConfig_V2 to _V4 of "NT Kernel Logger"; checked on a trace of Windows 8, except for
 * connections, the registry, ALPC and SplitIo. Those of heaps: MOF class HeapTrace, and
 * ETW_HEAP_EVENT_ALLOC (docs), not checked on a trace. Those of merging are from that trace alone.
 * The choice of events with stacks is PerfView's, besides those of TcpIp.
 */
#include "source/etw/tables_private.h"

#define KERNEL "Windows Kernel"
#define CONTROL "KernelTraceControl"
#define HEAP_PROVIDER "HeapTraceProvider"

/* ---- network --------------------------------------------------------------------------------- */

#define ENDS(type) F("PID", ETW_U32), F("size", ETW_U32), F("daddr", type), F("saddr", type), \
	F("dport", ETW_PORT), F("sport", ETW_PORT)
#define SENT(type) {ENDS(type), F("startime", ETW_U32), F("endtime", ETW_U32), \
	F("seqnum", ETW_U32), F("connid", ETW_POINTER)}
#define RECEIVED(type) {ENDS(type), F("seqnum", ETW_U32), F("connid", ETW_POINTER)}
#define CONNECTED(type) {ENDS(type), F("mss", ETW_U16), F("sackopt", ETW_U16), \
	F("tsopt", ETW_U16), \
	F("wsopt", ETW_U16), F("rcvwin", ETW_U32), F("rcvwinscale", ETW_U16), \
	F("sndwinscale", ETW_U16), \
	F("seqnum", ETW_U32), F("connid", ETW_POINTER)}

static const struct etw_field sent4[] = SENT(ETW_IP4), sent6[] = SENT(ETW_IP6);
static const struct etw_field received4[] = RECEIVED(ETW_IP4), received6[] = RECEIVED(ETW_IP6);
static const struct etw_field connected4[] = CONNECTED(ETW_IP4), connected6[] = CONNECTED(ETW_IP6);
static const struct etw_field failed[] = {F("Proto", ETW_U16), F("FailureCode", ETW_U16)};

#define NET_CLASS(key, called, layout, stack) \
	CLASS(key, ETW_OTHER, KERNEL, called, .min_version = 2, FIELDS(layout), \
	      .flag = ETW_FLAG_NETWORK, .has_stack = (stack))
#define NET(key, called, layout) NET_CLASS(key, called, layout, false)
#define NET_STACK(key, called, layout) NET_CLASS(key, called, layout, true)
static const struct etw_class tcp[] = {
	NET_STACK(10, "TcpIp/Send", sent4), NET_STACK(11, "TcpIp/Recv", received4),
	NET_STACK(12, "TcpIp/Connect", connected4), NET(13, "TcpIp/Disconnect", received4),
	NET(14, "TcpIp/Retransmit", received4), NET(15, "TcpIp/Accept", connected4),
	NET(16, "TcpIp/Reconnect", received4), NET(17, "TcpIp/Fail", failed),
	NET(18, "TcpIp/TCPCopy", received4), NET(26, "TcpIp/SendIPV6", sent6),
	NET(27, "TcpIp/RecvIPV6", received6), NET(28, "TcpIp/ConnectIPV6", connected6),
	NET(29, "TcpIp/DisconnectIPV6", received6), NET(30, "TcpIp/RetransmitIPV6", received6),
	NET(31, "TcpIp/AcceptIPV6", connected6), NET(32, "TcpIp/ReconnectIPV6", received6),
	NET(34, "TcpIp/TCPCopyIPV6", received6),
};

static const struct etw_class udp[] = {
	NET(10, "UdpIp/Send", received4), NET(11, "UdpIp/Recv", received4),
	NET(17, "UdpIp/Fail", failed), NET(26, "UdpIp/SendIPV6", received6),
	NET(27, "UdpIp/RecvIPV6", received6),
};

/* ---- the registry ---------------------------------------------------------------------------- */

#define REGISTRY_FIELDS(handle, name) { \
	F("InitialTime", ETW_SINCE), F("Status", ETW_X32), F("Index", ETW_U32), \
	[AT_KEY_HANDLE] = F("KeyHandle", handle, .n = ETW_NAMES_REGISTRY_KEY), \
	[AT_KEY_NAME] = F(name, ETW_UTF16Z)}

/* The name is the key's, from the key of the handle on, or that of a value of the key. */
static const struct etw_field key[] = REGISTRY_FIELDS(ETW_NAME_KEY, "KeyName");
static const struct etw_field key_value[] = REGISTRY_FIELDS(ETW_NAME_KEY, "ValueName");
/* The whole name of the handle's key. */
static const struct etw_field key_block[] = REGISTRY_FIELDS(ETW_POINTER, "KeyName");

#define REGISTRY_CLASS(number, called, layout, stack) \
	CLASS(number, ETW_OTHER, KERNEL, "Registry/" called, .min_version = 2, FIELDS(layout), \
	      .flag = ETW_FLAG_REGISTRY, .has_stack = (stack))
#define REGISTRY(number, called, layout) REGISTRY_CLASS(number, called, layout, true)
#define KEY_BLOCK(number, what, called, ...) \
	CLASS(number, what, KERNEL, "Registry/" called, .min_version = 2, FIELDS(key_block), \
	      .topic = ETW_TOPIC_KEY, .flag = ETW_FLAG_REGISTRY, __VA_ARGS__)
static const struct etw_class registry[] = {
	REGISTRY(10, "Create", key), REGISTRY(11, "Open", key), REGISTRY(12, "Delete", key),
	REGISTRY(13, "Query", key_value), REGISTRY(14, "SetValue", key_value),
	REGISTRY(15, "DeleteValue", key_value), REGISTRY(16, "QueryValue", key_value),
	REGISTRY(17, "EnumerateKey", key), REGISTRY(18, "EnumerateValueKey", key_value),
	REGISTRY(19, "QueryMultipleValue", key_value), REGISTRY(20, "SetInformation", key),
	REGISTRY(21, "Flush", key),
	KEY_BLOCK(22, ETW_KEY_CREATE, "KCBCreate", .has_stack = true),
	KEY_BLOCK(23, ETW_KEY_DELETE, "KCBDelete", .has_stack = true),
	KEY_BLOCK(24, ETW_KEY_RUNDOWN, "KCBRundownBegin", .describes = true),
	KEY_BLOCK(25, ETW_KEY_RUNDOWN, "KCBRundownEnd", .describes = true),
	REGISTRY(26, "Virtualize", key), REGISTRY_CLASS(27, "Close", key, false),
};

/* ---- local procedure calls, split requests --------------------------------------------------- */

static const struct etw_field message[] = {F("MessageID", ETW_U32)};
static const struct etw_field new_message[] = {
	F("IsServerPort", ETW_U32), F("PortName", ETW_UTF8Z),
};
static const struct etw_field unwait[] = {F("Status", ETW_X32)};
static const struct etw_field split[] = {F("ParentIrp", ETW_POINTER), F("ChildIrp", ETW_POINTER)};

#define ALPC(number, called, layout) \
	CLASS(number, ETW_OTHER, KERNEL, "ALPC/" called, FIELDS(layout), .has_stack = true, \
	      .flag = ETW_FLAG_ALPC)
static const struct etw_class alpc[] = {
	ALPC(33, "SendMessage", message), ALPC(34, "ReceiveMessage", message),
	ALPC(35, "WaitForReply", message), ALPC(36, "WaitForNewMessage", new_message),
	ALPC(37, "Unwait", unwait),
};

static const struct etw_class splits[] = {
	CLASS(32, ETW_OTHER, KERNEL, "SplitIo/VolMgr", FIELDS(split), .flag = ETW_FLAG_SPLIT_IO),
};

/* ---- heaps ----------------------------------------------------------------------------------- */

#define HEAP F("HeapHandle", ETW_POINTER)
static const struct etw_field heap_create[] = {HEAP, F("HeapFlags", ETW_X32)};
static const struct etw_field heap_alloc[] = {
	HEAP, [AT_HEAP_ALLOC_BYTES] = F("AllocSize", ETW_SIZE),
	[AT_HEAP_ALLOC_ADDRESS] = F("AllocAddress", ETW_POINTER), F("SourceId", ETW_U32),
};
static const struct etw_field heap_realloc[] = {
	HEAP, [AT_HEAP_REALLOC_ADDRESS] = F("NewAllocAddress", ETW_POINTER),
	[AT_HEAP_REALLOC_OLD] = F("OldAllocAddress", ETW_POINTER),
	[AT_HEAP_REALLOC_BYTES] = F("NewAllocSize", ETW_SIZE), F("OldAllocSize", ETW_SIZE),
	F("SourceId", ETW_U32),
};
static const struct etw_field heap_free[] = {
	HEAP, [AT_HEAP_FREE_ADDRESS] = F("FreeAddress", ETW_POINTER), F("SourceId", ETW_U32),
};
static const struct etw_field heap_only[] = {HEAP};
static const struct etw_field heap_expand[] = {
	HEAP, F("CommittedSize", ETW_SIZE), F("CommitAddress", ETW_POINTER),
	F("FreeSpace", ETW_SIZE), F("CommittedSpace", ETW_SIZE), F("ReservedSpace", ETW_SIZE),
	F("NoOfUCRs", ETW_U32),
};
static const struct etw_field heap_contract[] = {
	HEAP, F("DeCommittedSize", ETW_SIZE), F("DeCommitAddress", ETW_POINTER),
	F("FreeSpace", ETW_SIZE), F("CommittedSpace", ETW_SIZE), F("ReservedSpace", ETW_SIZE),
	F("NoOfUCRs", ETW_U32),
};

#define HEAP_CLASS(key, what, called, layout, ...) \
	CLASS(key, what, HEAP_PROVIDER, "HeapTrace/" called, FIELDS(layout), __VA_ARGS__)
static const struct etw_class heaps[] = {
	HEAP_CLASS(32, ETW_OTHER, "Create", heap_create, .has_stack = false),
	HEAP_CLASS(33, ETW_HEAP_ALLOC, "Alloc", heap_alloc, .has_stack = true),
	HEAP_CLASS(34, ETW_HEAP_REALLOC, "ReAlloc", heap_realloc, .has_stack = true),
	HEAP_CLASS(35, ETW_HEAP_DESTROY, "Destroy", heap_only, .has_stack = false),
	HEAP_CLASS(36, ETW_HEAP_FREE, "Free", heap_free, .has_stack = false),
	HEAP_CLASS(37, ETW_OTHER, "Expand", heap_expand, .has_stack = false),
	HEAP_CLASS(42, ETW_OTHER, "Contract", heap_contract, .has_stack = false),
};

/* ---- the machine ----------------------------------------------------------------------------- */

static const struct etw_field cpu[] = {
	F("MHz", ETW_U32), F("NumberOfProcessors", ETW_U32), F("MemSize", ETW_U32),
	F("PageSize", ETW_U32), F("AllocationGranularity", ETW_U32),
	F("ComputerName", ETW_UTF16_FIXED, .n = 256), F("DomainName", ETW_UTF16_FIXED, .n = 134),
	F("HyperThreadingFlag", ETW_POINTER),
};

static const struct etw_field physical_disk[] = {
	F("DiskNumber", ETW_U32), F("BytesPerSector", ETW_U32), F("SectorsPerTrack", ETW_U32),
	F("TracksPerCylinder", ETW_U32), F("Cylinders", ETW_U64), F("SCSIPort", ETW_U32),
	F("SCSIPath", ETW_U32), F("SCSITarget", ETW_U32), F("SCSILun", ETW_U32),
	F("Manufacturer", ETW_UTF16_FIXED, .n = 256), F("PartitionCount", ETW_U32),
	F("WriteCacheEnabled", ETW_U8), F(NULL, ETW_U8),
	F("BootDriveLetter", ETW_UTF16_FIXED, .n = 3), F("Spare", ETW_UTF16_FIXED, .n = 2),
};

static const struct etw_field logical_disk[] = {
	F("StartOffset", ETW_U64), F("PartitionSize", ETW_U64), F("DiskNumber", ETW_U32),
	F("Size", ETW_U32), F("DriveType", ETW_U32),
	F("DriveLetterString", ETW_UTF16_FIXED, .n = 4), F(NULL, ETW_U32),
	F("PartitionNumber", ETW_U32), F("SectorsPerCluster", ETW_U32),
	F("BytesPerSector", ETW_U32), F(NULL, ETW_U32), F("NumberOfFreeClusters", ETW_I64),
	F("TotalNumberOfClusters", ETW_I64), F("FileSystem", ETW_UTF16_FIXED, .n = 16),
	F("VolumeExt", ETW_U32),
};

static const struct etw_field nic[] = {
	F("PhysicalAddr", ETW_U64), F("PhysicalAddrLen", ETW_U32), F("Ipv4Index", ETW_U32),
	F("Ipv6Index", ETW_U32), F("NICDescription", ETW_UTF16Z), F("IpAddresses", ETW_UTF16Z),
	F("DnsServerAddresses", ETW_UTF16Z),
};

static const struct etw_field service[] = {
	F("ProcessID", ETW_U32), F("ServiceState", ETW_U32), F("SubProcessTag", ETW_U32),
	F("ServiceName", ETW_UTF16Z), F("DisplayName", ETW_UTF16Z), F("ProcessName", ETW_UTF16Z),
	F("LoadOrderGroup", ETW_UTF16Z), F("SvchostGroup", ETW_UTF16Z),
};

static const struct etw_field power[] = {
	F("S1", ETW_U8), F("S2", ETW_U8), F("S3", ETW_U8), F("S4", ETW_U8), F("S5", ETW_U8),
};

static const struct etw_field network[] = {
	F("TcbTablePartitions", ETW_U32), F("MaxHashTableSize", ETW_I32), F("MaxUserPort", ETW_U32),
	F("TcpTimedWaitDelay", ETW_U32),
};

static const struct etw_field device[] = {
	F("ClassGuid", ETW_GUID, .from = 4), F("UpperFiltersCount", ETW_U32, .from = 4),
	F("LowerFiltersCount", ETW_U32, .from = 4), F("DeviceID", ETW_UTF16Z, .from = 4),
	F("DeviceDescription", ETW_UTF16Z, .from = 4), F("FriendlyName", ETW_UTF16Z, .from = 4),
	F("PdoName", ETW_UTF16Z, .from = 4), F("ServiceName", ETW_UTF16Z, .from = 4),
};

static const struct etw_field ide[] = {
	F("TargetID", ETW_U32), F("DeviceType", ETW_U32), F("DeviceTimingMode", ETW_U32),
	F("LocationInformationLen", ETW_U32), F("LocationInformation", ETW_UTF16Z),
};

static const struct etw_field platform[] = {
	F("SystemManufacturer", ETW_UTF16Z), F("SystemProductName", ETW_UTF16Z),
	F("BiosDate", ETW_UTF16Z), F("BiosVersion", ETW_UTF16Z),
};

#define MACHINE(key, called, layout) \
	CLASS(key, ETW_OTHER, KERNEL, "SystemConfig/" called, .min_version = 2, FIELDS(layout))
static const struct etw_class machine[] = {
	MACHINE(10, "CPU", cpu), MACHINE(11, "PhyDisk", physical_disk),
	MACHINE(12, "LogDisk", logical_disk), MACHINE(13, "NIC", nic),
	MACHINE(15, "Services", service), MACHINE(16, "Power", power),
	MACHINE(17, "Network", network), MACHINE(22, "PnP", device), MACHINE(23, "IDEChannel", ide),
	CLASS(25, ETW_OTHER, "MSNT_SystemTrace", "SystemConfig/Platform", .min_version = 2,
	      FIELDS(platform)),
};

/* ---- what merging adds ----------------------------------------------------------------------- */

static const struct etw_field paths[] = {
	F("SystemDirectory", ETW_UTF16Z), F("SystemWindowsDirectory", ETW_UTF16Z),
};

static const struct etw_field unmapped[] = {[AT_VOLUME_NT] = F("Value", ETW_UTF16Z)};

static const struct etw_field volume[] = {
	[AT_VOLUME_NT] = F("NtPath", ETW_UTF16Z),
	[AT_VOLUME_DOS] = F("DosPath", ETW_UTF16Z),
};

static const struct etw_field build[] = {
	F("InstallDate", ETW_FILETIME), F("BuildLab", ETW_UTF16Z), F("ProductName", ETW_UTF16Z),
};

static const struct etw_class config[] = {
	CLASS(32, ETW_OTHER, KERNEL, "SysConfig/BuildInfo", FIELDS(build)),
	CLASS(33, ETW_OTHER, KERNEL, "SysConfig/SystemPaths", FIELDS(paths)),
	CLASS(34, ETW_OTHER, KERNEL, "SysConfig/UnknownVolume", FIELDS(unmapped)),
	CLASS(35, ETW_VOLUME, KERNEL, "SysConfig/VolumeMapping", FIELDS(volume)),
	CLASS(37, ETW_OTHER, KERNEL, "SysConfig/Opcode(37)", .nfields = 0),
};

static const struct etw_field image_id[] = {
	F("ImageBase", ETW_POINTER), F("ImageSize", ETW_SIZE), F("ProcessID", ETW_U32),
	F("TimeDateStamp", ETW_I32), F("OriginalFileName", ETW_UTF16Z),
};

static const struct etw_field rsds[] = {
	[AT_RSDS_BASE] = F("ImageBase", ETW_POINTER),
	[AT_RSDS_PID] = F("ProcessID", ETW_U32),
	[AT_RSDS_GUID] = F("GuidSig", ETW_GUID),
	[AT_RSDS_AGE] = F("Age", ETW_U32),
	F("PDBFileName", ETW_UTF8Z),
};

static const struct etw_field file_version[] = {
	F("ImageSize", ETW_U32), F("TimeDateStamp", ETW_I32), F("OrigFileName", ETW_UTF16Z),
	F("FileDescription", ETW_UTF16Z), F("FileVersion", ETW_UTF16Z),
	F("BinFileVersion", ETW_UTF16Z), F("VerLanguage", ETW_UTF16Z), F("ProductName", ETW_UTF16Z),
	F("CompanyName", ETW_UTF16Z), F("ProductVersion", ETW_UTF16Z), F("FileId", ETW_UTF16Z),
	F("ProgramId", ETW_UTF16Z),
};

static const struct etw_class image_ids[] = {
	CLASS(0, ETW_OTHER, CONTROL, "ImageID", FIELDS(image_id)),
	CLASS(32, ETW_OTHER, CONTROL, "ImageID/None", .nfields = 0),
	CLASS(36, ETW_IMAGE_RSDS, CONTROL, "ImageID/DbgID_RSDS", FIELDS(rsds)),
	CLASS(37, ETW_OTHER, CONTROL, "ImageID/DbgID_ILRSDS", FIELDS(rsds)),
	CLASS(64, ETW_OTHER, CONTROL, "ImageID/FileVersion", FIELDS(file_version)),
};

static const struct etw_class schemas[] = {
	CLASS(32, ETW_SCHEMA, CONTROL, "MetaData/EventInfo", .nfields = 0),
	CLASS(33, ETW_OTHER, CONTROL, "MetaData/EventMapInfo", .nfields = 0),
};

const struct etw_table etw_system_tables[] = {
	{TCP_GUID, TABLE(ETW_CLASSIC, KERNEL, tcp)},
	{UDP_GUID, TABLE(ETW_CLASSIC, KERNEL, udp)},
	{REGISTRY_GUID, TABLE(ETW_CLASSIC, KERNEL, registry)},
	{ALPC_GUID, TABLE(ETW_CLASSIC, KERNEL, alpc)},
	{SPLIT_IO_GUID, TABLE(ETW_CLASSIC, KERNEL, splits)},
	{HEAP_GUID, TABLE(ETW_CLASSIC, HEAP_PROVIDER, heaps)},
	{SYSTEM_CONFIG_GUID, TABLE(ETW_CLASSIC, KERNEL, machine)},
	{IMAGE_ID_GUID, TABLE(ETW_CLASSIC, CONTROL, image_ids)},
	{VOLUMES_GUID, TABLE(ETW_CLASSIC, KERNEL, config)},
	{SCHEMAS_GUID, TABLE(ETW_CLASSIC, CONTROL, schemas)},
	{.nclasses = 0},
};
