#include "source/etw/computed.h"

#include <string.h>

/* By enum etw_names. */
static const char *const name_fields[] = {"FileName", "DirectoryName", "KeyName"};
#define ELAPSED "ElapsedTimeMSec"
#define SERVICE "DiskServiceTimeMSec"

static struct event_field *find(struct etw_decoded *d, const char *name)
{
	for (uint32_t i = 0; i < d->nfields; i++)
		if (strcmp(d->fields[i].name, name) == 0)
			return &d->fields[i];
	return NULL;
}

static void add(struct etw_decoded *d, const struct event_field *field)
{
	if (d->nfields == EVENT_MAX_FIELDS)
		d->cut = true;
	else
		d->fields[d->nfields++] = *field;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void add_name(struct etw_computed *c, const struct etw_state *state, struct etw_decoded *d,
		     const char *called, const char *path)
{
	struct event_field *there = find(d, called);
	struct event_field field = {.name = called, .type = FIELD_TEXT, .v.text = c->text};

	if (there && there->type == FIELD_TEXT && *there->v.text)
		return;
	etw_state_path(state, path, c->text, sizeof(c->text));
	if (there)
		*there = field;
	else
		add(d, &field);
}

/* An event that opens a file has its path as the kernel writes it. */
static void convert_path(struct etw_computed *c, const struct etw_state *state,
			 struct etw_decoded *d)
{
	struct event_field *f = find(d, "FileName");

	if (!f || f->type != FIELD_TEXT)
		return;
	etw_state_path(state, f->v.text, c->text, sizeof(c->text));
	f->v.text = c->text;
}

/* ---- times ----------------------------------------------------------------------------------- */

static void add_ms(struct etw_decoded *d, const char *called, int64_t ticks, uint64_t frequency_hz)
{
	struct event_field field = {.name = called, .type = FIELD_DOUBLE};

	field.v.d = (double)(ticks > 0 ? ticks : 0) * 1000 / (double)frequency_hz;
	add(d, &field);
}

static bool ends_request(const struct etw_class *class)
{
	uint32_t id = class->id;

	return id == ETW_DISK_READ || id == ETW_DISK_WRITE || id == ETW_DISK_FLUSH;
}

/* Ticks of a file may be any number. */
static int64_t between(int64_t from, int64_t until)
{
	return (int64_t)((uint64_t)until - (uint64_t)from);
}

/* PerfView says it of reads and writes; a flush keeps the disk busy all the same. */
static void add_service(struct etw_computed *c, struct etw_decoded *d, uint64_t disk,
			int64_t elapsed, int64_t now, uint64_t frequency_hz)
{
	if (disk < ETW_DISKS_MAX && c->has_done[disk] &&
	    between(c->done_ticks[disk], now) < elapsed)
		elapsed = between(c->done_ticks[disk], now);
	if (d->class->id != ETW_DISK_FLUSH)
		add_ms(d, SERVICE, elapsed, frequency_hz);
	if (disk < ETW_DISKS_MAX) {
		c->has_done[disk] = true;
		c->done_ticks[disk] = now;
	}
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool is_computed(const struct etw_class *class)
{
	for (uint32_t i = 0; i < class->nfields; i++)
		if (class->fields[i].type == ETW_SINCE || class->fields[i].type == ETW_TICKS ||
		    class->fields[i].type == ETW_NAME_KEY)
			return true;
	return false;
}

void etw_computed_add(struct etw_computed *c, const struct etw_state *state, uint64_t frequency_hz,
		      const struct etw_record *r, struct etw_decoded *d)
{
	const char *name = NULL, *path;
	struct etw_value v[ETW_CLASS_MAX_FIELDS];
	uint32_t i, n, names = 0;
	int64_t elapsed;

	if (d->class && d->class->topic == ETW_TOPIC_OPEN)
		convert_path(c, state, d);
	if (!d->class || !is_computed(d->class))
		return;
	n = etw_class_read(d->class, r, v, ETW_CLASS_MAX_FIELDS);
	for (i = 0; i < n; i++) {
		const struct etw_field *f = &d->class->fields[i];

		if (!etw_value_is(&v[i]))
			continue;
		if (f->type == ETW_SINCE || f->type == ETW_TICKS) {
			elapsed = f->type == ETW_TICKS ? (int64_t)v[i].u
						       : between((int64_t)v[i].u, r->ticks);
			add_ms(d, ELAPSED, elapsed, frequency_hz);
			if (ends_request(d->class))
				add_service(c, d, v[AT_DISK_NUMBER].u, elapsed, r->ticks,
					    frequency_hz);
		}
		path = f->type == ETW_NAME_KEY ? etw_state_file(state, v[i].u, r->ticks) : NULL;
		if (path) {
			name = path;
			names = f->n;
		}
	}
	if (name)
		add_name(c, state, d, name_fields[names], name);
}

static bool has_field(const struct etw_class *class, const char *name)
{
	for (uint32_t i = 0; i < class->nfields; i++)
		if (class->fields[i].name && strcmp(class->fields[i].name, name) == 0)
			return true;
	return false;
}

uint32_t etw_computed_names(const struct etw_class *class, const char *names[ETW_COMPUTED_MAX])
{
	const char *key = NULL;
	uint32_t i, n = 0;

	for (i = 0; i < class->nfields; i++) {
		const struct etw_field *f = &class->fields[i];

		if (f->type == ETW_SINCE || f->type == ETW_TICKS)
			names[n++] = ELAPSED;
		else if (f->type == ETW_NAME_KEY)
			key = name_fields[f->n];
	}
	if (ends_request(class) && class->id != ETW_DISK_FLUSH)
		names[n++] = SERVICE;
	if (key && !has_field(class, key))
		names[n++] = key;
	return n;
}
