#include "symbol/dbghelp.h"

#include "base/array.h"
#include "base/os_windows.h"
#include "base/pool.h"
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

enum kind { FETCH, LOAD, NAME, UNLOAD, CLEAN_UP };       /* the first three may take long */

struct question {
	struct job job;
	struct dbghelp *d;
	enum kind kind;
	bool asked;
	_Atomic bool settled;                /* there is an answer, or nobody waits for one */
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
	struct pool *pool;                   /* of that thread; NULL until the first question */
	struct question *last;               /* or NULL */
	uint64_t rest_until_ns;
	bool answered_no_symsrv, answered_late;
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

static void fetch_file(struct dbghelp *d, struct question *q)
{
	wchar_t found[TEXT_MAX] = L"";
	PVOID id = q->is_pdb ? (PVOID)&q->guid : (PVOID)(uintptr_t)q->one;

	if (!d->symsrv) {
		q->answer = DBGHELP_NO_SYMSRV;
		return;
	}
	q->answer = DBGHELP_NONE;
	if (!d->call.find(d, d->servers, q->text, id, q->two, 0,
			  q->is_pdb ? SSRVOPT_GUIDPTR : SSRVOPT_DWORD, found, NULL, NULL) ||
	    !*found)
		return;
	memcpy(q->text, found, sizeof(found));
	q->answer = DBGHELP_DONE;
}

/* Only debug information counts: our own reader has read the exports. */
static void load_image(struct dbghelp *d, struct question *q)
{
	IMAGEHLP_MODULEW64 info = {.SizeOfStruct = sizeof(info)};

	q->answer = DBGHELP_NONE;
	d->next_base += BASE_STEP;
	q->module = d->call.load(d, NULL, q->text, NULL, d->next_base, 0, NULL, 0);
	if (!q->module)
		return;
	if (d->call.module(d, q->module, &info) && !info.PdbUnmatched && !info.DbgUnmatched &&
	    (info.SymType == SymPdb || info.SymType == SymDia || info.SymType == SymCv ||
	     info.SymType == SymCoff)) {
		q->answer = DBGHELP_DONE;
		return;
	}
	d->call.unload(d, q->module);
	q->module = 0;
}

static void name_address(struct dbghelp *d, struct question *q)
{
	union {
		SYMBOL_INFOW info;
		uint8_t room[sizeof(SYMBOL_INFOW) + DBGHELP_NAME_MAX * sizeof(wchar_t)];
	} symbol = {.info = {.SizeOfStruct = sizeof(SYMBOL_INFOW), .MaxNameLen = DBGHELP_NAME_MAX}};
	uint64_t address = q->module + q->function.rva;
	struct buf text = {0};
	DWORD64 displacement;

	q->answer = DBGHELP_NONE;
	if (!d->call.from(d, address, &displacement, &symbol.info) ||
	    symbol.info.Flags & SYMFLAG_EXPORT ||
	    (symbol.info.Tag != SYM_TAG_FUNCTION && symbol.info.Tag != SYM_TAG_PUBLIC) ||
	    symbol.info.Address < q->module || symbol.info.Address > address)
		return;
	symbol.room[sizeof(symbol.room) - 1] = symbol.room[sizeof(symbol.room) - 2] = 0;
	wide_put(&text, symbol.info.Name);
	if (!text.failed && text.len && text.len < sizeof(q->function.name)) {
		q->function.rva = (uint32_t)(symbol.info.Address - q->module);
		q->function.nbytes = symbol.info.Size;
		memcpy(q->function.name, text.data, text.len + 1);
		q->answer = DBGHELP_DONE;
	}
	buf_free(&text);
}

static void answer_question(struct job *job)
{
	struct question *q = (struct question *)job;
	struct dbghelp *d = q->d;

	q->answer = DBGHELP_NO_SERVERS;
	if (!get_ready(d))
		return;
	switch (q->kind) {
	case FETCH:
		fetch_file(d, q);
		break;
	case LOAD:
		load_image(d, q);
		break;
	case NAME:
		name_address(d, q);
		break;
	case UNLOAD:
		d->call.unload(d, q->module);
		break;
	case CLEAN_UP:
		d->call.cleanup(d);
		break;
	}
	/* Nobody will ever ask for this module. */
	if (atomic_exchange(&q->settled, true) && q->kind == LOAD && q->module)
		d->call.unload(d, q->module);
}

/* ---- the worker's side ----------------------------------------------------------------------- */

static void free_question(struct job *job)
{
	free(job);
}

static bool is_busy(const struct dbghelp *d)
{
	return d->last && d->last->asked && !job_done(&d->last->job);
}

/* The worker's next question; valid until the one after it. NULL = it cannot be asked. */
static struct question *new_question(struct dbghelp *d, enum kind kind)
{
	struct question *q = d && !is_busy(d) ? calloc(1, sizeof(*q)) : NULL;

	if (!q)
		return NULL;
	q->job = (struct job){.run = answer_question, .free = free_question, .what = "dbghelp"};
	job_init(&q->job);
	q->d = d;
	q->kind = kind;
	if (d->last)
		job_drop(&d->last->job);
	d->last = q;
	return q;
}

static enum dbghelp_answer ask(struct dbghelp *d, struct question *q)
{
	if (!q || (q->kind <= NAME && os_now_ns() < d->rest_until_ns))
		return DBGHELP_LATE;
	if (!d->pool && pool_new("dbghelp", 1, OS_PRIORITY_LOW, &d->pool, NULL))
		return DBGHELP_NONE;
	q->asked = true;
	pool_put(d->pool, &q->job);
	if (pool_wait(d->pool, &q->job, DBGHELP_MAX_NS) || atomic_exchange(&q->settled, true))
		return q->answer;
	d->rest_until_ns = os_now_ns() + REST_NS;
	return DBGHELP_LATE;
}

static bool put_text(struct question *q, const char *utf8)
{
	return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, q->text, TEXT_MAX) > 0;
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

enum dbghelp_answer dbghelp_fetch(struct dbghelp *d, const struct dbghelp_file *file,
				  struct buf *out)
{
	enum dbghelp_answer answer = DBGHELP_NONE;
	struct question *q;

	buf_reset(out);
	if (!d || !d->servers)
		return DBGHELP_NO_SERVERS;
	q = new_question(d, FETCH);
	if (!q)
		return answer_once(d, DBGHELP_LATE);
	q->is_pdb = file->guid != NULL;
	if (file->guid)
		memcpy(&q->guid, file->guid, sizeof(q->guid));
	q->one = file->timestamp;
	q->two = file->guid ? file->age : file->image_bytes;
	if (put_text(q, file->name))
		answer = ask(d, q);
	if (answer == DBGHELP_DONE)
		wide_put(out, q->text);
	return answer_once(d, answer);
}

uint64_t dbghelp_load(struct dbghelp *d, const char *path)
{
	struct question *q = new_question(d, LOAD);

	return q && put_text(q, path) && ask(d, q) == DBGHELP_DONE ? q->module : 0;
}

void dbghelp_unload(struct dbghelp *d, uint64_t module)
{
	struct question *q = module ? new_question(d, UNLOAD) : NULL;

	if (!q)
		return;
	q->module = module;
	ask(d, q);
}

bool dbghelp_name(struct dbghelp *d, uint64_t module, uint32_t rva, struct dbghelp_function *out)
{
	struct question *q = module ? new_question(d, NAME) : NULL;

	if (!q)
		return false;
	q->module = module;
	q->function.rva = rva;
	if (ask(d, q) != DBGHELP_DONE)
		return false;
	*out = q->function;
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

struct dbghelp *dbghelp_new(const char *path)
{
	struct dbghelp *d = calloc(1, sizeof(*d));

	if (d)
		d->servers = servers_of(path);
	return d;
}

void dbghelp_free(struct dbghelp *d)
{
	if (!d || is_busy(d))
		return;
	if (d->pool && d->ready)
		ask(d, new_question(d, CLEAN_UP));
	if (is_busy(d))
		return;
	pool_free(d->pool);
	if (d->last)
		job_drop(&d->last->job);
	wide_free(d->servers);
	free(d);
}
