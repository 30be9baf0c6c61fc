/*
 * What a recording takes and keeps, as the options say. The table of options fills this struct; the
 * engine and its sources hold a copy and obey it. A new recording option is a field here, a row in
 * options/table.c, and the file that obeys it. Texts are borrowed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_PERIOD 61u                    /* with rules about memory */

struct capture {
	/* obeyed by the sources */
	uint32_t freq_hz;                    /* sampling frequency */
	uint32_t stack_kb;                 /* copied per sample for unwinding; 0 = frame pointers */
	uint32_t memory_period;              /* one page fault in so many is recorded; 0 = none */
	bool no_kernel_stacks;
	bool no_python;                      /* no Python frames */
	bool no_node;                        /* no JavaScript frames */
	bool thread_time;                    /* context switches with stacks: stream off-cpu */
	bool wakers;                         /* thread time, and who ended each wait */
	const char *heap_process, *heap_next;        /* whose heap's events; NULL = nobody's */
	const char *only_process;            /* name or pid whose stacks are recorded; NULL = all */
	bool all_events;                     /* of a process, however many: they are counted */
	uint64_t batch_ns;                   /* so much longer than usual records wait for others */
	bool only_its_events;                /* of other processes not even starts and ends */
	uint32_t root_pid;                   /* this process and all that it starts; 0 = all */
	int heap_ring;                       /* of these, by heap_environment(); 0 = none */
	const char *file;                   /* a trace file in place of this machine; NULL = live */
	const char *file_title;              /* what its incident is called; NULL = "all of FILE" */
	/* which events: source/etw/wanted.h, source/list/asked.h; NULL = not given */
	const char *providers, *only_providers, *kernel_events, *clr_events, *tpl_events;
	const char *clr_event_level;
	const char *cpu_counters;            /* NAME@PERIOD, with ',' between */
	const char *events;          /* kernel:KEYWORD and clr:KEYWORD:EVENT, with ',' between */
	const char *on_fire;                 /* kind of dump at a firing; NULL = none */
	const char *dump_dir;                /* where dumps go; NULL = nowhere */
	bool gc_collect_only;                /* collections, and no samples */
	bool dotnet_alloc;                   /* GC/AllocationTick with stacks: stream alloc */
	bool dotnet_heap;                    /* and what survives collections: stream heap */

	/* obeyed by the engine */
	uint64_t pre_ns, post_ns;            /* window before and after a firing */
	uint64_t min_interval_ns;            /* between two incidents of one rule; 0 = none */
	uint64_t dedup_ns;                   /* repeats within this are only counted; 0 = off */
	uint64_t max_collect_ns;             /* the run ends after this time; 0 = no limit */
	uint32_t incidents;                  /* the run ends after this many; 0 = 1 */
	bool allow_fp;                       /* the last step of the budget may be frame pointers */
	bool replay_late;                    /* a firing is where its line's own time is */
	bool low_priority;              /* writer, symbol worker and data files run at the lowest */
	const char *symbol_path;        /* directories of PE and PDB files; NULL = none */
	const char *symbol_cache;                  /* directory; NULL = beside the store */
	const char *data_file;          /* export each stored incident there; NULL = do not */
	uint64_t stop_command_timeout_ns;
};

#define DOTNET_ALLOC_EVENT "clr:GC:GC/AllocationTick"
#define DOTNET_HEAP_EVENTS DOTNET_ALLOC_EVENT ",clr:GC:GC/Start,clr:GC:GC/Stop," \
	"clr:GCHeapSurvivalAndMovement:GC/GenerationRange," \
	"clr:GC:GC/BulkSurvivingObjectRanges,clr:GC:GC/BulkMovedObjectRanges"

/* What --dotnet-heap and --dotnet-alloc-sampled stand for, as in events; NULL = nothing. */
static inline const char *capture_dotnet_events(const struct capture *c)
{
	return c->dotnet_heap ? DOTNET_HEAP_EVENTS : c->dotnet_alloc ? DOTNET_ALLOC_EVENT : NULL;
}

/* Whether context switches are recorded: --wakers needs them too. */
static inline bool capture_switches(const struct capture *c)
{
	return c->thread_time || c->wakers;
}
