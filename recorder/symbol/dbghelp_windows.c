#include "symbol/dbghelp.h"

#include "base/array.h"
#include "base/os_windows.h"
#include "symbol/symbol_path.h"

#include <stdlib.h>
#include <string.h>

#include <windows.h>
#include <dbghelp.h>

#define TEXT_MAX 4096u                       /* characters of a path */
/* modules are placed side by side at otherwise unused addresses */
#define BASE_STEP ((uint64_t)1 << 32)
#define REST_NS (60 * NS_PER_SEC)            /* pause after an answer that took too long */

enum { SYM_TAG_FUNCTION = 5, SYM_TAG_PUBLIC = 10 };     /* enum SymTagEnum of cvconst.h */

typedef BOOL WINAPI sym_initialize(HANDLE h, PCWSTR path, BOOL invade);
typedef BOOL WINAPI sym_cleanup(HANDLE h);
typedef DWORD WINAPI sym_set_options(DWORD options);
typedef BOOL WINAPI sym_find(HANDLE h, PCWSTR path, PCWSTR name, PVOID id, DWORD two, DWORD three,
			     DWORD flags, PWSTR found, PFINDFILEINPATHCALLBACKW callback,
			     PVOID ctx);
typedef DWORD64 WINAPI sym_load(HANDLE h, HANDLE file, PCWSTR image, PCWSTR name, DWORD64 base,
				DWORD size, PMODLOAD_DATA data, DWORD flags);
typedef BOOL WINAPI sym_unload(HANDLE h, DWORD64 base);
typedef BOOL WINAPI sym_module(HANDLE h, DWORD64 address, PIMAGEHLP_MODULEW64 out);
typedef BOOL WINAPI sym_from(HANDLE h, DWORD64 address, PDWORD64 displacement, PSYMBOL_INFOW out);

struct functions {
	sym_initialize *initialize;
	sym_cleanup *cleanup;
	sym_set_options *set_options;
	sym_find *find;
	sym_load *load;
	sym_unload *unload;
	sym_module *module;
	sym_from *from;
};

enum job_kind { JOB_FETCH, JOB_LOAD, JOB_UNLOAD, JOB_NAME };

struct job {
	enum job_kind kind;
	enum dbghelp_answer answer;
	wchar_t text[TEXT_MAX];              /* name of a file or image; then what was found */
	bool is_pdb;
	GUID guid;
	DWORD one, two;                      /* timestamp; age, or size */
	uint64_t module;
	struct dbghelp_function function;
};

struct dbghelp {
	/* Used by its thread only. */
	struct functions call;
	HMODULE dll, symsrv;
	bool tried, ready;
	uint64_t next_base;
	wchar_t *servers;                    /* of the path; NULL = none. Not changed */

	/* Used by the worker only. */
	uint64_t rest_until_ns;
	bool answered_no_symsrv, answered_late;
	struct job question;
	struct os_thread *thread;
	struct os_mutex *lock;               /* guards the fields below */
	struct os_cond *asked, *answered;
	bool busy, abandoned, ending;
	struct job job;
};

/* ---- its thread ------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	size_t at;                           /* in struct functions */
} function_names[] = {
	{"SymInitializeW", offsetof(struct functions, initialize)},
	{"SymCleanup", offsetof(struct functions, cleanup)},
	{"SymSetOptions", offsetof(struct functions, set_options)},
	{"SymFindFileInPathW", offsetof(struct functions, find)},
	{"SymLoadModuleExW", offsetof(struct functions, load)},
	{"SymUnloadModule64", offsetof(struct functions, unload)},
	{"SymGetModuleInfoW64", offsetof(struct functions, module)},
	{"SymFromAddrW", offsetof(struct functions, from)},
};

/* The handle is a mere number to dbghelp: it reads from no process. */
static bool get_ready(struct dbghelp *d)
{
	size_t i;

	if (d->tried)
		return d->ready;
	d->tried = true;
	d->dll = LoadLibraryExW(L"dbghelp.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
	if (!d->dll)
		return false;
	/* If dbghelp loaded it, it might search the current folder. */
	if (d->servers)
		d->symsrv = LoadLibraryExW(L"symsrv.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
	for (i = 0; i < COUNT_OF(function_names); i++) {
		FARPROC found = GetProcAddress(d->dll, function_names[i].name);

		if (!found)
			return false;
		memcpy((char *)&d->call + function_names[i].at, &found, sizeof(found));
	}
	d->call.set_options(SYMOPT_FAIL_CRITICAL_ERRORS | SYMOPT_NO_PROMPTS |
			    SYMOPT_EXACT_SYMBOLS | SYMOPT_IGNORE_CVREC);
	/* With NULL it would take the current folder. */
	d->ready = d->call.initialize(d, L"", FALSE);
	return d->ready;
}

static void fetch_file(struct dbghelp *d, struct job *job)
{
	wchar_t found[TEXT_MAX] = L"";
	PVOID id = job->is_pdb ? (PVOID)&job->guid : (PVOID)(uintptr_t)job->one;

	if (!d->symsrv) {
		job->answer = DBGHELP_NO_SYMSRV;
		return;
	}
	job->answer = DBGHELP_NONE;
	if (!d->call.find(d, d->servers, job->text, id, job->two, 0,
			  job->is_pdb ? SSRVOPT_GUIDPTR : SSRVOPT_DWORD, found, NULL, NULL) ||
	    !*found)
		return;
	memcpy(job->text, found, sizeof(found));
	job->answer = DBGHELP_DONE;
}

/* Only debug information counts: our own reader has read the exports. */
static void load_image(struct dbghelp *d, struct job *job)
{
	IMAGEHLP_MODULEW64 info = {.SizeOfStruct = sizeof(info)};

	job->answer = DBGHELP_NONE;
	d->next_base += BASE_STEP;
	job->module = d->call.load(d, NULL, job->text, NULL, d->next_base, 0, NULL, 0);
	if (!job->module)
		return;
	if (d->call.module(d, job->module, &info) && !info.PdbUnmatched && !info.DbgUnmatched &&
	    (info.SymType == SymPdb || info.SymType == SymDia || info.SymType == SymCv ||
	     info.SymType == SymCoff)) {
		job->answer = DBGHELP_DONE;
		return;
	}
	d->call.unload(d, job->module);
	job->module = 0;
}

static void name_address(struct dbghelp *d, struct job *job)
{
	union {
		SYMBOL_INFOW info;
		uint8_t room[sizeof(SYMBOL_INFOW) + DBGHELP_NAME_MAX * sizeof(wchar_t)];
	} symbol = {.info = {.SizeOfStruct = sizeof(SYMBOL_INFOW), .MaxNameLen = DBGHELP_NAME_MAX}};
	uint64_t address = job->module + job->function.rva;
	struct buf text = {0};
	DWORD64 displacement;

	job->answer = DBGHELP_NONE;
	if (!d->call.from(d, address, &displacement, &symbol.info) ||
	    symbol.info.Flags & SYMFLAG_EXPORT ||
	    (symbol.info.Tag != SYM_TAG_FUNCTION && symbol.info.Tag != SYM_TAG_PUBLIC) ||
	    symbol.info.Address < job->module || symbol.info.Address > address)
		return;
	symbol.room[sizeof(symbol.room) - 1] = symbol.room[sizeof(symbol.room) - 2] = 0;
	wide_put(&text, symbol.info.Name);
	if (!text.failed && text.len && text.len < sizeof(job->function.name)) {
		job->function.rva = (uint32_t)(symbol.info.Address - job->module);
		job->function.nbytes = symbol.info.Size;
		memcpy(job->function.name, text.data, text.len + 1);
		job->answer = DBGHELP_DONE;
	}
	buf_free(&text);
}

static void do_job(struct dbghelp *d, struct job *job)
{
	job->answer = DBGHELP_NO_SERVERS;
	if (!get_ready(d))
		return;
	switch (job->kind) {
	case JOB_FETCH:
		fetch_file(d, job);
		break;
	case JOB_LOAD:
		load_image(d, job);
		break;
	case JOB_NAME:
		name_address(d, job);
		break;
	case JOB_UNLOAD:
		d->call.unload(d, job->module);
		break;
	}
}

static void run_jobs(void *ctx)
{
	struct dbghelp *d = ctx;
	struct job *job = malloc(sizeof(*job));

	os_thread_priority(OS_PRIORITY_LOW);
	os_mutex_lock(d->lock);
	while (!d->ending && job) {
		if (!d->busy) {
			os_cond_wait(d->asked, d->lock, NS_PER_SEC);
			continue;
		}
		*job = d->job;
		os_mutex_unlock(d->lock);
		do_job(d, job);
		os_mutex_lock(d->lock);
		/* Nobody will ever ask for this module. */
		if (d->abandoned && job->kind == JOB_LOAD && job->module)
			d->call.unload(d, job->module);
		d->job = *job;
		d->busy = d->abandoned = false;
		os_cond_signal(d->answered);
	}
	os_mutex_unlock(d->lock);
	if (d->ready)
		d->call.cleanup(d);
	free(job);
}

/* ---- the worker's side ----------------------------------------------------------------------- */

static enum dbghelp_answer ask_thread(struct dbghelp *d, struct job *job)
{
	uint64_t start_ns = os_now_ns(), spent_ns = 0;
	enum dbghelp_answer answer = DBGHELP_LATE;

	if (job->kind != JOB_UNLOAD && start_ns < d->rest_until_ns)
		return DBGHELP_LATE;
	if (!d->thread && os_thread_start("dbghelp", run_jobs, d, &d->thread, NULL))
		return DBGHELP_NONE;
	os_mutex_lock(d->lock);
	if (!d->busy) {
		d->job = *job;
		d->busy = true;
		os_cond_signal(d->asked);
		while (d->busy && spent_ns < DBGHELP_MAX_NS) {
			os_cond_wait(d->answered, d->lock, DBGHELP_MAX_NS - spent_ns);
			spent_ns = os_now_ns() - start_ns;
		}
		if (!d->busy)
			answer = d->job.answer;
		else
			d->abandoned = true;
		*job = d->job;
	}
	os_mutex_unlock(d->lock);
	if (answer == DBGHELP_LATE)
		d->rest_until_ns = os_now_ns() + REST_NS;
	return answer;
}

static bool put_text(struct job *job, const char *utf8)
{
	return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, job->text, TEXT_MAX) >
	       0;
}

/* An answer that matters once becomes NONE the second time. */
static enum dbghelp_answer answer_once(struct dbghelp *d, enum dbghelp_answer answer)
{
	bool *told = answer == DBGHELP_NO_SYMSRV ? &d->answered_no_symsrv
		     : answer == DBGHELP_LATE	 ? &d->answered_late
						 : NULL;
	bool again = told && *told;

	if (told)
		*told = true;
	return again ? DBGHELP_NONE : answer;
}

/* The worker's next job, empty; NULL without dbghelp. */
static struct job *new_job(struct dbghelp *d, enum job_kind kind)
{
	if (!d)
		return NULL;
	d->question = (struct job){.kind = kind};
	return &d->question;
}

enum dbghelp_answer dbghelp_fetch(struct dbghelp *d, const struct dbghelp_file *file,
				  struct buf *out)
{
	enum dbghelp_answer answer = DBGHELP_NONE;
	struct job *job = new_job(d, JOB_FETCH);

	buf_reset(out);
	if (!job || !d->servers)
		return DBGHELP_NO_SERVERS;
	job->is_pdb = file->guid != NULL;
	if (file->guid)
		memcpy(&job->guid, file->guid, sizeof(job->guid));
	job->one = file->timestamp;
	job->two = file->guid ? file->age : file->image_bytes;
	if (put_text(job, file->name))
		answer = ask_thread(d, job);
	if (answer == DBGHELP_DONE)
		wide_put(out, job->text);
	return answer_once(d, answer);
}

uint64_t dbghelp_load(struct dbghelp *d, const char *path)
{
	struct job *job = new_job(d, JOB_LOAD);

	return job && put_text(job, path) && ask_thread(d, job) == DBGHELP_DONE ? job->module : 0;
}

void dbghelp_unload(struct dbghelp *d, uint64_t module)
{
	struct job *job = module ? new_job(d, JOB_UNLOAD) : NULL;

	if (!job)
		return;
	job->module = module;
	ask_thread(d, job);
}

bool dbghelp_name(struct dbghelp *d, uint64_t module, uint32_t rva, struct dbghelp_function *out)
{
	struct job *job = module ? new_job(d, JOB_NAME) : NULL;

	if (!job)
		return false;
	job->module = module;
	job->function.rva = rva;
	if (ask_thread(d, job) != DBGHELP_DONE)
		return false;
	*out = job->function;
	return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* The servers of a path; dbghelp gets nothing else of it. */
static wchar_t *servers_of(const char *path)
{
	struct symbol_element e;
	struct buf text = {0};
	wchar_t *wide = NULL;

	while (path && symbol_path_next(&path, &e)) {
		if (!symbol_path_is_server(&e))
			continue;
		if (text.len)
			buf_putc(&text, ';');
		buf_put(&text, e.text, e.nbytes);
	}
	if (text.len && !text.failed)
		wide = wide_text(buf_text(&text));
	buf_free(&text);
	return wide;
}

static void free_all(struct dbghelp *d)
{
	os_cond_free(d->asked);
	os_cond_free(d->answered);
	os_mutex_free(d->lock);
	wide_free(d->servers);
	free(d);
}

struct dbghelp *dbghelp_new(const char *path)
{
	struct dbghelp *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->lock = os_mutex_new();
	d->asked = os_cond_new();
	d->answered = os_cond_new();
	d->servers = servers_of(path);
	if (d->lock && d->asked && d->answered)
		return d;
	free_all(d);
	return NULL;
}

void dbghelp_free(struct dbghelp *d)
{
	bool stuck;

	if (!d)
		return;
	os_mutex_lock(d->lock);
	d->ending = true;
	stuck = d->busy;
	os_cond_signal(d->asked);
	os_mutex_unlock(d->lock);
	if (stuck)
		return;
	os_thread_join(d->thread);
	free_all(d);
}
