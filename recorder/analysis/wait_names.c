#include "analysis/wait_names.h"

#include "analysis/leaf.h"
#include "base/array.h"
#include "base/table.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How near to a wait an event is that the thread causes just before or just after it. */
#define NEAR_NS 1000000ULL
#define NAMES_OF_FILE 4096u                  /* one a second, and mostly the newest is good */

enum wait { WAIT_NONE, WAIT_BLOCKED, WAIT_DISK, WAIT_FAULT, WAIT_NETWORK };
static const char *const wait_names[] = {"", "BLOCKED_TIME", "DISK_TIME", "HARD_FAULT",
					 "NETWORK_TIME"};

/* Events that tell what a thread waits for. */
enum told { TOLD_NOTHING, TOLD_FAULT, TOLD_DISK, TOLD_PAGE, TOLD_SOCKET, TOLD_PORT, TOLD_STATE,
	    TOLD_FILE };
static const struct {
	const char *name;
	enum told told;
	enum wait wait;
} tellers[] = {
	{"Memory/HardFault", TOLD_FAULT, WAIT_FAULT},
	{"DiskIO/Read", TOLD_DISK, WAIT_DISK},
	{"DiskIO/Write", TOLD_DISK, WAIT_DISK},
	{"mm_filemap_add_to_page_cache", TOLD_PAGE, WAIT_NONE},
	{"sock_recv_length", TOLD_SOCKET, WAIT_NETWORK},
	{"sock_send_length", TOLD_SOCKET, WAIT_NETWORK},
	{"inet_sock_set_state", TOLD_STATE, WAIT_NONE},
	{"File/Name", TOLD_FILE, WAIT_NONE},
	{"TcpIp/Recv", TOLD_PORT, WAIT_NETWORK},
	{"TcpIp/RecvIPV6", TOLD_PORT, WAIT_NETWORK},
};
static const char *const socket_modules[] = {"afd.sys", "mswsock.dll", "ws2_32.dll", "afd",
					     "mswsock", "ws2_32"};

struct naming {
	struct incident *in;
	uint32_t *events, *first;            /* of each thread: events[first[t]..first[t + 1]) */
	uint32_t *ports, nports;             /* TcpIp/Recv, which have no thread */
	uint32_t *earlier;                   /* of a state or name: the same one's before */
	struct table sockets, files;         /* the last state, name of each: indices of events */
	struct ends {                        /* of each thread, */
		uint64_t told_ns;            /* the end of the sample before, */
		uint64_t disk_ns;            /* and of the one before that waited for a disk */
		uint64_t last_ns, last_disk_ns;
	} *ends;
	uint32_t module;
};

/* ---- the events ------------------------------------------------------------------------------ */

static size_t teller_of(const struct incident_event *e)
{
	size_t i;

	for (i = 0; i < COUNT_OF(tellers) && strcmp(e->name, tellers[i].name) != 0; i++)
		;
	return i;
}

static enum told told_by(const struct incident_event *e)
{
	size_t i = teller_of(e);

	return i < COUNT_OF(tellers) ? tellers[i].told : TOLD_NOTHING;
}

static bool is_of_thread(const struct incident *in, const struct incident_event *e)
{
	enum told told = told_by(e);

	return told >= TOLD_FAULT && told <= TOLD_SOCKET && e->thread < in->nthreads;
}

static bool same_socket(const void *ctx, uint32_t value, const void *key)
{
	const struct incident *in = ctx;

	return incident_field_uint(in, &in->events[value], "skaddr") == *(const uint64_t *)key;
}

static int add_state(struct naming *n, uint32_t event)
{
	uint64_t socket = incident_field_uint(n->in, &n->in->events[event], "skaddr");
	uint32_t last = table_find(&n->sockets, hash_u64(socket), same_socket, n->in, &socket);

	n->earlier[event] = last;
	if (last != TABLE_NONE)
		table_remove(&n->sockets, hash_u64(socket), last);
	return table_add(&n->sockets, hash_u64(socket), event);
}

struct file_id {
	uint64_t dev, ino;
};

static struct file_id file_of(const struct incident *in, uint32_t event)
{
	const struct incident_event *e = &in->events[event];

	return (struct file_id){incident_field_uint(in, e, "s_dev"),
				incident_field_uint(in, e, "i_ino")};
}

static bool same_file(const void *ctx, uint32_t value, const void *key)
{
	struct file_id file = file_of(ctx, value);

	return memcmp(&file, key, sizeof(file)) == 0;
}

static int add_file(struct naming *n, uint32_t event)
{
	struct file_id file = file_of(n->in, event);
	uint64_t hash = hash_pair(file.dev, file.ino);
	uint32_t last = table_find(&n->files, hash, same_file, n->in, &file);

	n->earlier[event] = last;
	if (last != TABLE_NONE)
		table_remove(&n->files, hash, last);
	return table_add(&n->files, hash, event);
}

/* Sort the events by thread; they are in the order of time. */
static int list_events(struct naming *n)
{
	const struct incident *in = n->in;
	uint32_t *at = calloc((size_t)in->nthreads + 1, sizeof(*at)), i;
	int rc = at ? 0 : ERR_MEMORY;

	for (i = 0; !rc && i < in->nevents; i++)
		if (is_of_thread(in, &in->events[i]))
			n->first[in->events[i].thread + 1]++;
	for (i = 0; !rc && i < in->nthreads; i++) {
		n->first[i + 1] += n->first[i];
		at[i] = n->first[i];
	}
	for (i = 0; !rc && i < in->nevents; i++) {
		if (is_of_thread(in, &in->events[i]))
			n->events[at[in->events[i].thread]++] = i;
		else if (told_by(&in->events[i]) == TOLD_PORT)
			n->ports[n->nports++] = i;
		else if (told_by(&in->events[i]) == TOLD_STATE)
			rc = add_state(n, i);
		else if (told_by(&in->events[i]) == TOLD_FILE)
			rc = add_file(n, i);
	}
	free(at);
	return rc;
}

/* ---- what they say --------------------------------------------------------------------------- */

static uint64_t number(const struct naming *n, uint32_t event, const char *field)
{
	return incident_field_uint(n->in, &n->in->events[event], field);
}

static void put_address(const struct naming *n, uint32_t event, char *out, size_t size)
{
	bool v6 = number(n, event, "family") == 10;
	const char *const family = v6 ? "daddr_v6" : "daddr";
	size_t used = (size_t)snprintf(out, size, v6 ? "to [" : "to ");
	unsigned i, bytes = v6 ? 16 : 4;
	char field[16];

	for (i = 0; i < bytes && used < size; i++) {
		snprintf(field, sizeof(field), "%s%u", family, i);
		used += (size_t)snprintf(out + used, size - used, v6 ? "%02x%s" : "%u%s",
					 (unsigned)number(n, event, field),
					 i + 1 == bytes || (v6 && i % 2 == 0) ? "" :
					 v6 ? ":" : ".");
	}
	if (used < size)
		snprintf(out + used, size - used, "%s port %" PRIu64, v6 ? "]" : "",
			 number(n, event, "dport"));
}

/* Of a connection, by who asked for it: the port that was asked for. */
static bool put_socket(const struct naming *n, uint32_t event, char *out, size_t size)
{
	enum { SYN_SENT = 2, SYN_RECV = 3 };  /* tcp_states.h */
	uint64_t socket = number(n, event, "sk");
	uint32_t at = table_find(&n->sockets, hash_u64(socket), same_socket, n->in, &socket);

	for (; at != TABLE_NONE; at = n->earlier[at]) {
		if (at > event)
			continue;
		if (number(n, at, "oldstate") == SYN_SENT ||
		    number(n, at, "newstate") == SYN_SENT) {
			put_address(n, at, out, size);
			return true;
		}
		if (number(n, at, "oldstate") == SYN_RECV) {
			snprintf(out, size, "on port %" PRIu64, number(n, at, "sport"));
			return true;
		}
	}
	return false;
}

/* A number is used again for another file; each name says in which time it was this one's. */
static const char *path_of(const struct naming *n, uint32_t event)
{
	struct file_id file = file_of(n->in, event);
	uint32_t at = table_find(&n->files, hash_pair(file.dev, file.ino), same_file, n->in, &file);
	uint64_t time_ns = n->in->events[event].time_ns;
	const struct event_field *path;
	unsigned steps;

	for (steps = 0; at != TABLE_NONE && steps < NAMES_OF_FILE; steps++, at = n->earlier[at]) {
		uint64_t told_ns = n->in->events[at].time_ns;

		path = incident_field(n->in, &n->in->events[at], "FileName");
		if (time_ns <= told_ns &&
		    told_ns - time_ns <= 1000 * number(n, at, "from_us_ago") &&
		    told_ns - time_ns >= 1000 * number(n, at, "to_us_ago") &&
		    path && path->type == FIELD_TEXT)
			return path->v.text;
	}
	return NULL;
}

/* The name of a file or port; false = it has none. */
static bool put_name(const struct naming *n, uint32_t event, char *out, size_t size)
{
	const struct incident_event *e = &n->in->events[event];
	const struct event_field *f = incident_field(n->in, e, "FileName");
	const char *path;

	switch (told_by(e)) {
	case TOLD_PAGE:
		path = path_of(n, event);
		if (path)
			snprintf(out, size, "%s", path);
		else
			snprintf(out, size, "inode %" PRIu64 " of device %" PRIu64 ":%" PRIu64,
				 number(n, event, "i_ino"), number(n, event, "s_dev") >> 20,
				 number(n, event, "s_dev") & 0xFFFFF);
		return true;
	case TOLD_SOCKET:
		return put_socket(n, event, out, size);
	case TOLD_PORT:
		f = incident_field(n->in, e, "daddr");
		snprintf(out, size, "%s ports %" PRIu64 " and %" PRIu64,
			 f && f->type == FIELD_TEXT ? f->v.text : "?", number(n, event, "dport"),
			 number(n, event, "sport"));
		return true;
	default:
		snprintf(out, size, "%s", f && f->type == FIELD_TEXT ? f->v.text : "");
		return *out;
	}
}

/* ---- the waits ------------------------------------------------------------------------------- */

/* The node in a stack that says how the thread waits; STACK_NONE = it does not. */
static uint32_t wait_at(const struct naming *n, uint32_t stack, enum wait *wait)
{
	const struct incident *in = n->in;
	unsigned i;

	for (; stack != STACK_NONE; stack = in->stacks[stack].parent) {
		const struct incident_frame *f = &in->frames[in->stacks[stack].frame];

		if (!f->function || strcmp(in->modules[f->module].path, "[thread]") != 0)
			continue;
		for (i = WAIT_BLOCKED; i < COUNT_OF(wait_names); i++) {
			*wait = (enum wait)i;
			if (strcmp(f->function, wait_names[i]) == 0)
				return stack;
		}
	}
	return STACK_NONE;
}

static bool waits_in_sockets(const struct naming *n, uint32_t stack)
{
	for (; stack != STACK_NONE; stack = n->in->stacks[stack].parent) {
		const char *module = incident_frame_module(n->in, n->in->stacks[stack].frame);
		size_t i;

		for (i = 0; module && i < COUNT_OF(socket_modules); i++)
			if (text_same_fold(module, socket_modules[i]))
				return true;
	}
	return false;
}

/* Can the event be of such a wait? Those of Linux name waits of their own kind only. */
static bool fits(const struct incident_event *e, enum wait wait)
{
	switch (told_by(e)) {
	case TOLD_FAULT:
	case TOLD_DISK:
		return wait != WAIT_NETWORK;
	case TOLD_PAGE:
		return wait == WAIT_DISK || wait == WAIT_FAULT;
	case TOLD_SOCKET:
		return wait == WAIT_NETWORK;
	default:
		return wait == WAIT_BLOCKED;
	}
}

struct found {
	char name[FUNCTION_NAME_MAX];        /* of the last */
	uint32_t names;                      /* how many different ones followed each other */
	enum wait wait;                      /* what they say that it was */
};

static void take(const struct naming *n, uint32_t event, struct found *f)
{
	const size_t teller = teller_of(&n->in->events[event]);
	char name[FUNCTION_NAME_MAX];

	if (!put_name(n, event, name, sizeof(name)))
		return;
	if (!f->names || strcmp(name, f->name) != 0) {
		f->names++;
		snprintf(f->name, sizeof(f->name), "%s", name);
	}
	/* A fault reads from a disk, too. */
	if (tellers[teller].wait && f->wait != WAIT_FAULT)
		f->wait = tellers[teller].wait;
}

/* The latest moment of the wait: Linux adds a page to its cache before the thread waits for it. */
static uint64_t waited_ns(const struct incident_event *e)
{
	switch (told_by(e)) {
	case TOLD_PAGE:
		return e->time_ns + NEAR_NS;
	case TOLD_FAULT:
	case TOLD_SOCKET:
		return e->time_ns > NEAR_NS ? e->time_ns - NEAR_NS : 0;
	default:
		return e->time_ns;
	}
}

/* The first of some events, in order of time, that is after a moment: its place in the list. */
static uint32_t first_after(const struct naming *n, const uint32_t *list, uint32_t from,
			    uint32_t to, uint64_t time_ns)
{
	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (n->in->events[list[middle]].time_ns <= time_ns)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* What was told in the times that a sample may stand for. */
static void find(const struct naming *n, const struct incident_sample *s, uint32_t node,
		 enum wait wait, struct found *f)
{
	uint64_t begin_ns = s->time_ns > s->weight + NEAR_NS ? s->time_ns - s->weight : NEAR_NS;
	const struct ends *ends = &n->ends[s->thread];
	uint64_t from_ns = ends->told_ns;
	uint32_t pid = n->in->processes[n->in->threads[s->thread].process].pid, i;
	uint32_t end = n->first[s->thread + 1];

	if (from_ns > begin_ns || !from_ns)
		from_ns = begin_ns;
	i = first_after(n, n->events, n->first[s->thread], end, from_ns - NEAR_NS);
	for (; i < end && n->in->events[n->events[i]].time_ns <= s->time_ns + NEAR_NS; i++) {
		const struct incident_event *e = &n->in->events[n->events[i]];
		uint64_t at_ns = waited_ns(e);

		if (told_by(e) == TOLD_PAGE ? e->time_ns > s->time_ns || e->time_ns <= ends->disk_ns
					    : at_ns > s->time_ns)
			continue;            /* a page is of the first wait that ends after it */
		if (at_ns > from_ns && fits(e, wait))
			take(n, n->events[i], f);
	}
	if (wait != WAIT_BLOCKED || f->names || !n->nports || !waits_in_sockets(n, node))
		return;
	i = first_after(n, n->ports, 0, n->nports, from_ns);
	for (; i < n->nports && n->in->events[n->ports[i]].time_ns <= s->time_ns; i++)
		if (number(n, n->ports[i], "PID") == pid)
			take(n, n->ports[i], f);
}

/* A stack with another name of the wait and a frame below it; STACK_NONE = no memory. */
static uint32_t rename_stack(struct naming *n, uint32_t stack, uint32_t node, const struct found *f)
{
	struct incident *in = n->in;
	struct incident_frame frame = in->frames[in->stacks[node].frame];
	uint32_t below[STACK_MAX_FRAMES], k = 0, made;
	char name[FUNCTION_NAME_MAX];

	for (; stack != node && k < STACK_MAX_FRAMES; stack = in->stacks[stack].parent)
		below[k++] = in->stacks[stack].frame;
	if (stack != node)
		return stack;                /* deeper than any stack of ours */
	if (f->wait) {
		frame.function = wait_names[f->wait];
		frame.offset = hash_bytes(frame.function, strlen(frame.function));
	}
	made = incident_add_frame(in, &frame);
	if (made != UINT32_MAX)
		made = incident_add_stack(in, in->stacks[node].parent, made);
	snprintf(name, sizeof(name), "%" PRIu32 " files or ports", f->names);
	if (made != STACK_NONE)
		made = leaf_add(in, n->module, made, f->names > 1 ? name : f->name);
	while (k-- && made != STACK_NONE)
		made = incident_add_stack(in, made, below[k]);
	return made;
}

/* All of a thread's samples that end at one moment stand for the same time. */
static int name_sample(struct naming *n, struct incident_sample *s)
{
	struct ends *ends;
	struct found f = {.names = 0};
	enum wait wait = WAIT_NONE;
	uint32_t node;
	int rc = 0;

	if (s->stream != STREAM_OFF_CPU || s->thread >= n->in->nthreads)
		return 0;
	ends = &n->ends[s->thread];
	if (s->time_ns != ends->last_ns) {
		ends->told_ns = ends->last_ns;
		ends->last_ns = s->time_ns;
	}
	node = wait_at(n, s->stack, &wait);
	if (node == STACK_NONE)
		return 0;
	if ((wait == WAIT_DISK || wait == WAIT_FAULT) && s->time_ns != ends->last_disk_ns) {
		ends->disk_ns = ends->last_disk_ns;
		ends->last_disk_ns = s->time_ns;
	}
	find(n, s, node, wait, &f);
	if (f.names) {
		s->stack = rename_stack(n, s->stack, node, &f);
		rc = s->stack == STACK_NONE ? ERR_MEMORY : 0;
	}
	return rc;
}

static bool is_told(const struct incident *in)
{
	uint64_t has[STREAMS_MAX];
	uint32_t i;

	incident_count_streams(in, has);
	for (i = 0; has[STREAM_OFF_CPU] && i < in->nevents; i++)
		if (told_by(&in->events[i]))
			return true;
	return false;
}

int wait_names_add(struct incident *in)
{
	struct naming n = {.in = in};
	uint32_t i;
	int rc = 0;

	if (!is_told(in))
		return 0;
	n.module = leaf_module(in);
	n.events = calloc((size_t)in->nevents + 1, sizeof(*n.events));
	n.ports = calloc((size_t)in->nevents + 1, sizeof(*n.ports));
	n.earlier = calloc((size_t)in->nevents + 1, sizeof(*n.earlier));
	n.first = calloc((size_t)in->nthreads + 2, sizeof(*n.first));
	n.ends = calloc((size_t)in->nthreads + 1, sizeof(*n.ends));
	if (n.module == UINT32_MAX || !n.events || !n.ports || !n.earlier || !n.first || !n.ends)
		rc = ERR_MEMORY;
	if (!rc)
		rc = list_events(&n);
	for (i = 0; !rc && i < in->nsamples; i++)
		rc = name_sample(&n, &in->samples[i]);
	table_free(&n.sockets);
	table_free(&n.files);
	free(n.events);
	free(n.ports);
	free(n.earlier);
	free(n.first);
	free(n.ends);
	return rc;
}
