/*
 * The known classes of ETW records, and the layouts of their fields.
 *
 * A class is one kind of record: its provider and event name (as PerfView prints them, so that
 * rules written for it match), an id for programs, and its payload's layout as data. Only the
 * layout tables (etw/class_kernel.c, etw/class_clr.c, ...) know where a field stands; all other
 * code reads values by index or by name. Tables are constant. Every function is pure, allocates
 * nothing, and may be called by any thread.
 *
 * A payload is read from its start to the first field that does not fit; that field and all after
 * it are absent. Bytes after the last known field (of later versions) are ignored.
 *
 * Sources of the layouts: the MOF classes of "NT Kernel Logger" (docs, ETW) and the CLR's manifest
 * ClrEtwAll.man; most are checked on real traces.
 */
#pragma once

#include "source/etw/record.h"

#include <stdbool.h>
#include <stddef.h>

#define ETW_CLASS_MAX_FIELDS 40u             /* of any class */

enum etw_type {
	ETW_U8, ETW_U16, ETW_U32, ETW_U64,   /* unsigned */
	ETW_I8, ETW_I16, ETW_I32, ETW_I64,
	ETW_X8, ETW_X16, ETW_X32, ETW_X64,   /* unsigned, shown in hex: flags, keys */
	ETW_F32, ETW_F64,                    /* value.u holds the bits of a double */
	ETW_SINCE, ETW_TICKS,                /* u64: a moment, a duration; in the trace's ticks */
	ETW_POINTER,                         /* of the record's pointer size; hex */
	ETW_NAME_KEY,                        /* the same; leads to a name: n is enum etw_names */
	ETW_SIZE,                            /* of the record's pointer size; decimal; last */
	ETW_BOOL8, ETW_BOOL32,
	ETW_UTF16Z, ETW_UTF8Z,               /* up to a NUL or the payload's end */
	ETW_UTF16_FIXED, ETW_UTF8_FIXED,     /* n characters, cut at the first NUL */
	ETW_UTF16_COUNTED, ETW_UTF8_COUNTED, /* u16 bytes before it */
	ETW_GUID,
	ETW_SID,                             /* a bare SID */
	ETW_WBEM_SID,                        /* u32 0, or two pointers and a SID */
	ETW_FILETIME, ETW_SYSTEMTIME,
	ETW_TIME_T,                          /* u32 seconds since 1970 */
	ETW_PORT,                            /* u16, big-endian */
	ETW_IP4, ETW_IP6,
	ETW_BYTES,                           /* n bytes; 0 = the rest of the payload */
	ETW_BYTES_COUNTED,                   /* u16 bytes before it */
	ETW_SOCKET, ETW_SOCKET_COUNTED,      /* like these two; a SOCKADDR */
	ETW_WORDS,                           /* n of the record's pointer size: a gap */
	ETW_ADDRESSES,                       /* the rest, or as many as field n; value.u = count */
	ETW_BITS, ETW_BIT,                   /* `width` bits of field n at `shift`; BIT: yes/no */
	ETW_TYPES,
};

/* What the key of ETW_NAME_KEY names, which is another field of the event: etw/computed.h. */
enum etw_names { ETW_NAMES_FILE, ETW_NAMES_DIRECTORY, ETW_NAMES_REGISTRY_KEY };

struct etw_field {
	const char *name;                    /* NULL: a gap, never shown */
	uint8_t type;                        /* enum etw_type */
	uint8_t from, to;                    /* event versions with this field; to 0 = no end */
	uint16_t n;                          /* meaning: see the type */
	uint8_t shift, width;                /* ETW_BITS, ETW_BIT */
};

/*
 * One field's value. Absent: bytes is NULL. Numbers: u, sign-extended for ETW_I*, the bits of a
 * double for ETW_F*. Texts, GUIDs, SIDs, bytes and addresses are borrowed from the payload.
 */
struct etw_value {
	uint64_t u;
	const uint8_t *bytes;
	uint32_t nbytes;
};

/* Classes that programs tell apart; all others are ETW_OTHER. Their field indices are below. */
enum etw_class_id {
	ETW_OTHER,
	ETW_HEADER,                          /* the log file's header event */
	ETW_PROCESS_START, ETW_PROCESS_STOP, ETW_PROCESS_DCSTART, ETW_PROCESS_DCSTOP,
	ETW_PROCESS_DEFUNCT,
	ETW_THREAD_START, ETW_THREAD_STOP, ETW_THREAD_DCSTART, ETW_THREAD_DCSTOP,
	ETW_CSWITCH, ETW_READY_THREAD,
	ETW_SAMPLE, ETW_PMC_SAMPLE, ETW_SAMPLE_START, ETW_SAMPLE_STOP, ETW_SAMPLE_SET,
	ETW_IMAGE_LOAD, ETW_IMAGE_UNLOAD, ETW_IMAGE_DCSTART, ETW_IMAGE_DCSTOP,
	ETW_HYPERCALL_PAGE,
	ETW_DISK_READ, ETW_DISK_WRITE, ETW_DISK_FLUSH,
	ETW_DISK_READ_INIT, ETW_DISK_WRITE_INIT, ETW_DISK_FLUSH_INIT,
	ETW_FILE_NAME, ETW_FILE_CREATE, ETW_FILE_DELETE, ETW_FILE_RUNDOWN,
	ETW_HARD_FAULT,
	ETW_KEY_CREATE, ETW_KEY_DELETE, ETW_KEY_RUNDOWN,     /* of a registry key's block */
	ETW_STACK, ETW_STACK_KEY_KERNEL, ETW_STACK_KEY_USER, ETW_STACK_KEY_DELETE,
	ETW_STACK_KEY_RUNDOWN,
	ETW_VOLUME, ETW_IMAGE_RSDS,
	ETW_SCHEMA,                          /* TRACE_EVENT_INFO of merging */
	ETW_GC_START,
	ETW_METHOD_LOAD, ETW_METHOD_UNLOAD, ETW_METHOD_DCSTART, ETW_METHOD_DCSTOP,
	ETW_MODULE_LOAD, ETW_MODULE_UNLOAD, ETW_MODULE_DCSTART, ETW_MODULE_DCSTOP,
	ETW_CLR_STACK,
	ETW_HEAP_ALLOC, ETW_HEAP_REALLOC, ETW_HEAP_FREE, ETW_HEAP_DESTROY,
	ETW_CLASS_IDS,
};

/* What a class is about, for code that treats several classes alike. */
enum etw_topic {
	ETW_TOPIC_OTHER,
	ETW_TOPIC_PROCESS, ETW_TOPIC_THREAD, ETW_TOPIC_IMAGE, ETW_TOPIC_MEMORY,
	ETW_TOPIC_FILE,                      /* its name */
	ETW_TOPIC_OPEN, ETW_TOPIC_CLOSE,     /* of a file */
	ETW_TOPIC_KEY,                       /* the name of a registry key */
	ETW_TOPIC_DISK_START,                /* of a request */
	ETW_TOPIC_STACK, ETW_TOPIC_METHOD, ETW_TOPIC_MODULE,
};

/* EVENT_TRACE_FLAG_* of a session, by PerfView's names. */
enum etw_flag {
	ETW_FLAG_PROCESS = 0x1, ETW_FLAG_THREAD = 0x2, ETW_FLAG_IMAGE = 0x4,
	ETW_FLAG_PROCESS_COUNTERS = 0x8, ETW_FLAG_CSWITCH = 0x10, ETW_FLAG_DPC = 0x20,
	ETW_FLAG_INTERRUPT = 0x40, ETW_FLAG_SYSTEM_CALL = 0x80, ETW_FLAG_DISK_IO = 0x100,
	ETW_FLAG_DISK_FILE_IO = 0x200, ETW_FLAG_DISK_IO_INIT = 0x400, ETW_FLAG_DISPATCHER = 0x800,
	ETW_FLAG_PAGE_FAULTS = 0x1000, ETW_FLAG_HARD_FAULTS = 0x2000,
	ETW_FLAG_VIRTUAL_ALLOC = 0x4000, ETW_FLAG_VAMAP = 0x8000, ETW_FLAG_NETWORK = 0x10000,
	ETW_FLAG_REGISTRY = 0x20000, ETW_FLAG_ALPC = 0x100000, ETW_FLAG_SPLIT_IO = 0x200000,
	ETW_FLAG_DRIVER = 0x800000, ETW_FLAG_PROFILE = 0x1000000, ETW_FLAG_FILE_IO = 0x2000000,
	ETW_FLAG_FILE_IO_INIT = 0x4000000,
};

struct etw_class {
	uint16_t key;                        /* opcode of a classic event, id of a manifest event */
	uint8_t id;                          /* enum etw_class_id */
	uint8_t topic;                       /* enum etw_topic */
	uint8_t min_version;                 /* older versions have no fields here */
	uint8_t nfields;
	bool describes;                      /* only other records: nothing happened */
	bool has_stack;                      /* sessions are asked for it */
	bool has_tid;                        /* in the payload, at tid_bytes + tid_pointers * P */
	uint8_t tid_bytes, tid_pointers;
	uint8_t tid_version;                 /* older versions have the tid elsewhere */
	uint32_t flag;                       /* enum etw_flag: brings it live; 0 = not live */
	const char *provider, *name;         /* "Windows Kernel", "PerfInfo/Sample" */
	const struct etw_field *fields;
};

/* The class of a record; NULL = unknown. */
const struct etw_class *etw_class_find(const struct etw_record *record);

/* What etw_class_find() gave for other records of these kinds; starts as {0}. */
struct etw_class_memo {
	struct etw_class_known {
		struct etw_guid guid;
		uint32_t kind;               /* header and key; 0 = empty */
		const struct etw_class *class;
	} known[64];
};

/* As etw_class_find(); a trace has millions of records of few kinds. */
const struct etw_class *etw_class_recall(struct etw_class_memo *memo,
					 const struct etw_record *record);

/* The name of a known provider ("Windows Kernel"), even if the event is unknown; else NULL. */
const char *etw_class_provider(const struct etw_guid *guid);

/*
 * Read the first `max` fields of a record of this class.
 *
 * values   set; a field that the version lacks, or that does not fit, is absent
 * returns  how many were set: the smaller of max and the class's fields
 */
uint32_t etw_class_read(const struct etw_class *class, const struct etw_record *record,
			struct etw_value *values, uint32_t max);

/*
 * Read one field at `at` of a payload whose layout came with the trace. Returns the address behind
 * it, or NULL when it does not fit. Only etw_class_read() reads ETW_BITS, ETW_BIT and counted
 * ETW_ADDRESSES, which depend on another field.
 */
const uint8_t *etw_value_read(const struct etw_field *field, uint32_t pointer_bytes,
			      const uint8_t *at, const uint8_t *end, struct etw_value *out);

static inline bool etw_value_is(const struct etw_value *value)
{
	return value->bytes != NULL;
}

double etw_value_double(const struct etw_value *value);     /* of ETW_F32 and ETW_F64 */

/* Address i of ETW_ADDRESSES; i < value->u. */
uint64_t etw_value_address(const struct etw_value *value, uint32_t pointer_bytes, uint64_t i);

/* The classes of table t, counted from 0, for lists and tests; NULL after the last table. */
const struct etw_class *etw_class_table(uint32_t t, uint32_t *nclasses, struct etw_guid *guid);

/* ---- indices of the fields that programs read, by class -------------------------------------- */

/* ETW_PROCESS_*: flags 1 package, 2 Wow64, 4 protected; image: file name in UTF-8, rest UTF-16 */
enum {
	AT_PROCESS_KEY, AT_PROCESS_PID, AT_PROCESS_PARENT, AT_PROCESS_EXIT = 4,
	AT_PROCESS_FLAGS = 6, AT_PROCESS_SID, AT_PROCESS_IMAGE, AT_PROCESS_COMMAND_LINE,
	AT_PROCESS_APPLICATION = 11, AT_PROCESS_FIELDS,
};

enum { AT_THREAD_PID, AT_THREAD_TID, AT_THREAD_NAME = 14, AT_THREAD_FIELDS };

enum {
	AT_CSWITCH_NEW_TID, AT_CSWITCH_OLD_TID, AT_CSWITCH_OLD_WAIT_REASON = 6,
	AT_CSWITCH_OLD_STATE = 8, AT_CSWITCH_FIELDS,
};

enum { AT_READY_TID, AT_READY_FLAGS = 3, AT_READY_FIELDS };

/* ETW_SAMPLE: flags 1 in a DPC, 2 in an ISR */
enum { AT_SAMPLE_IP, AT_SAMPLE_TID, AT_SAMPLE_FLAGS = 3, AT_SAMPLE_FIELDS = 5 };

/* ETW_SAMPLE_START, _STOP, _SET; in 100 ns */
enum { AT_INTERVAL_SOURCE, AT_INTERVAL_NEW, AT_INTERVAL_FIELDS };

enum {
	AT_IMAGE_BASE, AT_IMAGE_BYTES, AT_IMAGE_PID, AT_IMAGE_TIMESTAMP = 4,
	AT_IMAGE_SIGNATURE_LEVEL, AT_IMAGE_DEFAULT_BASE = 9, AT_IMAGE_PATH = 11, AT_IMAGE_FIELDS,
};

enum { AT_DISK_NUMBER, AT_DISK_FLAGS, AT_DISK_FILE = 5, AT_DISK_FIELDS = 9 };

enum { AT_FILE_KEY, AT_FILE_PATH, AT_FILE_FIELDS };

enum { AT_OPEN_OBJECT = 2, AT_OPEN_PATH = 7, AT_OPEN_FIELDS };

enum { AT_CLOSE_OBJECT = 2, AT_CLOSE_FIELDS };

enum { AT_KEY_HANDLE = 3, AT_KEY_NAME, AT_KEY_FIELDS };         /* ETW_TOPIC_KEY */

enum { AT_VOLUME_NT, AT_VOLUME_DOS, AT_VOLUME_FIELDS };        /* UTF-16 prefixes */

/* ETW_IMAGE_RSDS; the age follows the GUID */
enum { AT_RSDS_BASE, AT_RSDS_PID, AT_RSDS_GUID, AT_RSDS_AGE, AT_RSDS_FIELDS };

enum { AT_GC_START_COUNT, AT_GC_START_CLR = 4, AT_GC_START_FIELDS };

/* ETW_METHOD_*: UTF-16 texts follow the flags of verbose events */
enum {
	AT_METHOD_ID, AT_METHOD_MODULE, AT_METHOD_START, AT_METHOD_BYTES, AT_METHOD_CODE_FIELDS,
	AT_METHOD_NAMESPACE = 6, AT_METHOD_NAME, AT_METHOD_FIELDS,
	AT_METHOD_SIGNATURE = AT_METHOD_FIELDS, AT_METHOD_ALL,
};

enum { AT_MODULE_ID, AT_MODULE_IL_PATH = 4, AT_MODULE_FIELDS };

/* ETW_CLR_STACK: frames are ETW_ADDRESSES, leaf first */
enum { AT_CLR_STACK_COUNT = 2, AT_CLR_STACK_FRAMES, AT_CLR_STACK_FIELDS };

enum { AT_HEAP_HANDLE };                     /* of all ETW_HEAP_* */
enum { AT_HEAP_ALLOC_BYTES = 1, AT_HEAP_ALLOC_ADDRESS, AT_HEAP_ALLOC_FIELDS };
enum {
	AT_HEAP_REALLOC_ADDRESS = 1, AT_HEAP_REALLOC_OLD, AT_HEAP_REALLOC_BYTES,
	AT_HEAP_REALLOC_FIELDS,
};
enum { AT_HEAP_FREE_ADDRESS = 1, AT_HEAP_FREE_FIELDS };
