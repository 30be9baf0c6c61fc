/*
 * The events that merging adds to a trace: system paths, volumes, identities of images, schemas.
 *
 * Keys are opcodes. Layouts: design page etl-format.md section 6.
 */
#include "source/etw/tables_private.h"

#define CONFIG "Windows Kernel"
#define CONTROL "KernelTraceControl"

static const struct etw_field paths[] = {
	F("SystemDirectory", ETW_UTF16Z), F("SystemWindowsDirectory", ETW_UTF16Z),
};

static const struct etw_field unmapped[] = {[AT_VOLUME_NT] = F("Value", ETW_UTF16Z)};

static const struct etw_field volume[] = {
	[AT_VOLUME_NT] = F("NtPath", ETW_UTF16Z),
	[AT_VOLUME_DOS] = F("DosPath", ETW_UTF16Z),
};

static const struct etw_field build[] = {
	F("InstallDate", ETW_FILETIME),
	F("BuildLab", ETW_UTF16Z),
	F("ProductName", ETW_UTF16Z),
};

static const struct etw_class config[] = {
	CLASS(32, ETW_OTHER, CONFIG, "SysConfig/BuildInfo", FIELDS(build)),
	CLASS(33, ETW_SYSTEM_PATHS, CONFIG, "SysConfig/SystemPaths", FIELDS(paths)),
	CLASS(34, ETW_VOLUME_UNMAPPED, CONFIG, "SysConfig/UnknownVolume", FIELDS(unmapped)),
	CLASS(35, ETW_VOLUME, CONFIG, "SysConfig/VolumeMapping", FIELDS(volume)),
	CLASS(37, ETW_OTHER, CONFIG, "SysConfig/Opcode(37)", .nfields = 0),
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
	[AT_RSDS_PDB] = F("PDBFileName", ETW_UTF8Z),
};

static const struct etw_field file_version[] = {
	F("ImageSize", ETW_U32),
	F("TimeDateStamp", ETW_I32),
	F("OrigFileName", ETW_UTF16Z),
	F("FileDescription", ETW_UTF16Z),
	F("FileVersion", ETW_UTF16Z),
	F("BinFileVersion", ETW_UTF16Z),
	F("VerLanguage", ETW_UTF16Z),
	F("ProductName", ETW_UTF16Z),
	F("CompanyName", ETW_UTF16Z),
	F("ProductVersion", ETW_UTF16Z),
	F("FileId", ETW_UTF16Z),
	F("ProgramId", ETW_UTF16Z),
};

static const struct etw_class image_ids[] = {
	CLASS(0, ETW_IMAGE_ID, CONTROL, "ImageID", FIELDS(image_id)),
	CLASS(32, ETW_OTHER, CONTROL, "ImageID/None", .nfields = 0),
	CLASS(36, ETW_IMAGE_RSDS, CONTROL, "ImageID/DbgID_RSDS", FIELDS(rsds)),
	CLASS(37, ETW_IMAGE_ILRSDS, CONTROL, "ImageID/DbgID_ILRSDS", FIELDS(rsds)),
	CLASS(64, ETW_IMAGE_FILE_VERSION, CONTROL, "ImageID/FileVersion", FIELDS(file_version)),
};

static const struct etw_class schemas[] = {
	CLASS(32, ETW_SCHEMA, CONTROL, "MetaData/EventInfo", .nfields = 0),
	CLASS(33, ETW_SCHEMA_MAP, CONTROL, "MetaData/EventMapInfo", .nfields = 0),
};

const struct etw_table etw_image_tables[] = {
	{GUID(0xb3e675d7, 0x2554, 0x4f18, 0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde),
	 TABLE(ETW_CLASSIC, CONTROL, image_ids)},
	{GUID(0x9b79ee91, 0xb5fd, 0x41c0, 0xa2, 0x43, 0x42, 0x48, 0xe2, 0x66, 0xe9, 0xd0),
	 TABLE(ETW_CLASSIC, CONFIG, config)},
	{GUID(0xbbccf6c1, 0x6cd1, 0x48c4, 0x80, 0xff, 0x83, 0x94, 0x82, 0xe3, 0x76, 0x71),
	 TABLE(ETW_CLASSIC, CONTROL, schemas)},
	{.nclasses = 0},
};
