/*
 * OpenTelemetry's profiles, as ProfilesData of opentelemetry-proto 1.10 and later has them, which
 * is ExportProfilesServiceRequest, too. A resource for each process, with a profile of its own.
 * Field numbers of profiles.proto, common.proto and resource.proto (status: alpha):
 *
 *	ProfilesData       1 resource_profiles   2 dictionary
 *	ProfilesDictionary 1 mapping_table   2 location_table   3 function_table   4 link_table
 *	                   5 string_table    6 attribute_table  7 stack_table
 *	ResourceProfiles   1 resource {1 attributes {1 key, 2 value}}   2 scope_profiles
 *	ScopeProfiles      1 scope {1 name, 2 version}   2 profiles
 *	Profile            1 sample_type   2 samples   3 time_unix_nano (fixed64)
 *	                   4 duration_nano
 *	                   5 period_type   6 period   7 profile_id
 *	Sample             1 stack_index   4 values, packed; before 1.10 values were 2
 *	Mapping            4 filename      5 attribute_indices, packed
 *	Stack              1 location_indices, packed, leaf first
 *	Location           1 mapping_index   2 address   3 lines {1 function_index, 2 line}
 *	                   4 attribute_indices, packed
 *	Function           1 name   2 system_name   3 filename   (all names: indices of strings)
 *	KeyValueAndUnit    1 key_strindex   2 value {1 string_value, 3 int_value}
 *
 * The first element of each table is empty: index 0 means none.
 */
#include "export/names.h"
#include "export/profile.h"

#include "base/array.h"
#include "base/text.h"
#include "base/version.h"

#include <stdio.h>
#include <string.h>

/* ---- attributes ------------------------------------------------------------------------------ */

struct otlp {
	struct profile p;                    /* first: more_of_*() get it */
	struct text_table attributes, stacks;
	struct buf resources;
};

static void put_value(struct buf *out, const char *text)
{
	struct buf value = {0};

	proto_put_bytes(&value, 1, text, strlen(text));
	proto_put_part(out, 2, &value);
	buf_free(&value);
}

/* One for each key and text. */
static uint32_t attribute(struct otlp *o, const char *key, const char *text)
{
	struct buf name = {0}, part = {0};
	uint32_t id;
	bool is_new;

	buf_printf(&name, "%s=%s", key, text);
	id = profile_id(&o->p, &o->attributes, buf_text(&name), name.len, &is_new);
	if (is_new) {
		proto_put_int(&part, 1, profile_text(&o->p, key));
		put_value(&part, text);
		proto_put_part(&o->p.tables, 6, &part);
	}
	if (name.failed)
		o->p.failed = name.failed;
	buf_free(&name);
	buf_free(&part);
	return id;
}

static void put_attribute(struct otlp *o, unsigned field, const char *key, const char *text)
{
	struct buf packed = {0};

	proto_put_varint(&packed, attribute(o, key, text));
	proto_put_part(&o->p.part, field, &packed);
	buf_free(&packed);
}

static void more_of_mapping(struct profile *p, const struct incident_module *m)
{
	uint32_t id = profile_build_id(p, m);
	char text[BUILD_ID_MAX * 2 + 1];

	if (!id)
		return;
	snprintf(text, sizeof(text), "%.*s", (int)p->strings.items[id].len,
		 (const char *)text_table_get(&p->strings, id));
	put_attribute((struct otlp *)p, 5, "process.executable.build_id.gnu", text);
}

/* profile.frame.type of OpenTelemetry's semantic conventions. */
static void more_of_location(struct profile *p, uint32_t frame)
{
	static const char *const types[CODE_KINDS] = {
		[CODE_KERNEL] = "kernel", [CODE_NATIVE] = "native", [CODE_JAVA] = "jvm",
		[CODE_PYTHON] = "cpython", [CODE_JAVASCRIPT] = "v8js", [CODE_DOTNET] = "dotnet",
	};
	const char *type = frame == FRAME_NONE ? NULL : types[incident_frame_code(p->in, frame)];

	if (type)
		put_attribute((struct otlp *)p, 4, "profile.frame.type", type);
}

static const struct profile_fields fields = {
	.mappings = 1, .locations = 2, .functions = 3, .strings = 5,
	.mapping_file = 4,
	.location_mapping = 1, .location_address = 2, .location_line = 3,
	.function_name = 1, .function_system = 2, .function_file = 3,
	.more_of_mapping = more_of_mapping, .more_of_location = more_of_location,
};

/* ---- samples --------------------------------------------------------------------------------- */

static void put_sample(struct otlp *o, const struct export_options *opt, const struct sum *s,
		       const struct path *path, struct buf *profile)
{
	struct buf ids = {0}, part = {0}, values = {0};
	uint32_t stack;
	bool is_new;

	profile_put_locations(&o->p, s, path, &ids);
	if (ids.failed)
		o->p.failed = ids.failed;
	stack = profile_id(&o->p, &o->stacks, buf_text(&ids), ids.len, &is_new);
	if (is_new) {
		proto_put_part(&part, 1, &ids);
		proto_put_part(&o->p.tables, 7, &part);
		buf_reset(&part);
	}
	proto_put_int(&part, 1, stack);
	proto_put_varint(&values, s->time_ns);
	proto_put_part(&part, opt->before_otlp_10 ? 2 : 4, &values);
	proto_put_part(profile, 2, &part);
	buf_free(&ids);
	buf_free(&part);
	buf_free(&values);
}

static void put_value_type(struct otlp *o, unsigned field, enum stream stream, struct buf *out)
{
	const struct stream_metric *m = &stream_metrics[stream];
	struct buf type = {0};

	proto_put_int(&type, 1, profile_text(&o->p, m->pprof));
	proto_put_int(&type, 2, profile_text(&o->p, profile_units[m->unit]));
	proto_put_part(out, field, &type);
	buf_free(&type);
}

/* Of a profile; the same incident has the same ones each time: its uuid, and which part it is. */
static void put_id(struct otlp *o, enum stream stream, const struct export_part *part,
		   struct buf *profile)
{
	const char *uuid = o->p.in->head.uuid;
	uint8_t id[16] = {0};
	unsigned n = 0;

	for (; *uuid && n < 32; uuid++)
		if (hex_digit(*uuid) >= 0) {
			id[n / 2] |= (uint8_t)(hex_digit(*uuid) << (n % 2 ? 0 : 4));
			n++;
		}
	for (n = 0; n < 4; n++) {
		id[n] ^= (uint8_t)(part->group >> 8 * n);
		id[n + 4] ^= (uint8_t)(part->from >> 8 * n);
	}
	id[8] ^= (uint8_t)(stream + 1);
	proto_put_bytes(profile, 7, id, sizeof(id));
}

static void put_profile(struct otlp *o, const struct export_options *opt, const struct sums *sums,
			struct export_part *part, struct buf *profile)
{
	const struct incident_head *h = &o->p.in->head;
	uint64_t before_ns = h->trigger_ns - h->t0_ns;
	struct path path = {0};
	uint32_t i, last;

	put_value_type(o, 1, opt->stream, profile);
	for (i = sums_first(sums, part, &last); i < last && !o->p.failed; i++) {
		o->p.failed = path_make(&path, o->p.in, sums->items[i].stack);
		if (!o->p.failed)
			put_sample(o, opt, &sums->items[i], &path, profile);
	}
	put_id(o, opt->stream, part, profile);
	proto_put_fixed64(profile, 3, h->trigger_wall_ns > before_ns
					     ? h->trigger_wall_ns - before_ns : 0);
	proto_put_int(profile, 4, h->t1_ns - h->t0_ns);
	if (h->period_ns[opt->stream]) {
		put_value_type(o, 5, opt->stream, profile);
		proto_put_int(profile, 6, h->period_ns[opt->stream]);
	}
	path_free(&path);
}

/* ---- resources ------------------------------------------------------------------------------- */

static void put_text(struct buf *resource, const char *key, const char *text)
{
	struct buf pair = {0}, clean = {0};

	name_put(&clean, text);
	if (clean.failed)
		resource->failed = clean.failed;
	if (*text) {
		proto_put_bytes(&pair, 1, key, strlen(key));
		put_value(&pair, buf_text(&clean));
		proto_put_part(resource, 1, &pair);
	}
	buf_free(&pair);
	buf_free(&clean);
}

static void put_number(struct buf *resource, const char *key, uint64_t number)
{
	struct buf pair = {0}, value = {0};

	proto_put_bytes(&pair, 1, key, strlen(key));
	proto_put_int(&value, 3, number);
	proto_put_part(&pair, 2, &value);
	proto_put_part(resource, 1, &pair);
	buf_free(&pair);
	buf_free(&value);
}

/* alone: it stands for itself, not for all of its service. */
static void put_resource(struct otlp *o, uint32_t process, bool alone, struct buf *out)
{
	const struct incident *in = o->p.in;
	const struct incident_process *is = process == UINT32_MAX ? NULL : &in->processes[process];
	struct buf resource = {0}, service = {0};
	struct home home;

	home_read(is ? is->home : "", &home);
	service_put(&service, in, process);
	if (service.failed)
		o->p.failed = service.failed;
	put_text(&resource, "service.name", buf_text(&service));
	put_text(&resource, "host.name", in->head.host ? in->head.host : "");
	put_text(&resource, "container.id", home.of[HOME_CONTAINER]);
	put_text(&resource, "k8s.pod.uid", home.of[HOME_POD]);
	put_text(&resource, "linux.systemd.unit", home.of[HOME_UNIT]);
	if (is && alone) {
		put_text(&resource, "process.executable.name", is->name);
		put_number(&resource, "process.pid", is->pid);
	}
	proto_put_part(out, 1, &resource);
	buf_free(&resource);
	buf_free(&service);
}

static int put_process(struct otlp *o, const struct export_options *given, struct export_part *part,
		       struct err *err)
{
	struct export_options opt = *given;
	struct sums sums = {0};
	struct buf profile = {0}, scope = {0}, resource = {0};
	int rc;

	opt.part = part;
	rc = sums_make(&sums, o->p.in, &opt, SUMS_BY_PROCESS, err);
	if (!rc && sums.n) {
		put_profile(o, &opt, &sums, part, &profile);
		proto_put_bytes(&resource, 1, "recorder", strlen("recorder"));
		proto_put_bytes(&resource, 2, RECORDER_VERSION, strlen(RECORDER_VERSION));
		proto_put_part(&scope, 1, &resource);
		proto_put_part(&scope, 2, &profile);
		buf_reset(&resource);
		put_resource(o, sums.items[0].process, !part->group_of, &resource);
		proto_put_part(&resource, 2, &scope);
		proto_put_part(&o->resources, 1, &resource);
	}
	sums_free(&sums);
	buf_free(&profile);
	buf_free(&scope);
	buf_free(&resource);
	return rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int put_all(struct otlp *o, const struct export_options *opt, struct err *err)
{
	struct export_part all = {.max = UINT32_MAX};
	static const uint8_t tables[] = {1, 2, 3, 4, 6, 7};
	uint32_t i;
	int rc = 0;

	for (i = 0; i < COUNT_OF(tables); i++)
		proto_put_bytes(&o->p.tables, tables[i], "", 0);
	if (opt->part)
		return put_process(o, opt, opt->part, err);
	for (i = 0; i < o->p.in->nprocesses && !rc; i++) {
		all.group = i;
		rc = put_process(o, opt, &all, err);
	}
	all.group = UINT32_MAX;
	return rc ? rc : put_process(o, opt, &all, err);
}

static int otlp_write(const struct incident *in, const struct export_options *opt, struct out *out,
		      struct err *err)
{
	struct otlp o = {.attributes = {0}};
	int rc = profile_begin(&o.p, in, &fields, err);

	if (!rc)
		rc = put_all(&o, opt, err);
	if (!rc) {
		profile_put_strings(&o.p);
		proto_put_part(&o.resources, 2, &o.p.tables);
		rc = o.p.failed ? err_memory(err, "while writing a profile")
				: buf_check(&o.resources, "the profile", err);
	}
	if (!rc)
		out_put(out, o.resources.data, o.resources.len);
	profile_free(&o.p);
	text_table_free(&o.attributes);
	text_table_free(&o.stacks);
	buf_free(&o.resources);
	return rc;
}

const struct exporter otlp_exporter = {
	.name = "otlp",
	.suffix = ".otlp",
	.summary = "OpenTelemetry's profiles (1.10)",
	.binary = true,
	.usual = false,
	.sets = true,
	.write = otlp_write,
};
