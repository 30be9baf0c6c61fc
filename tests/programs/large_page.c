/*
 * Write the HTML report of a million samples and a million events, for tests/cli/report_linux.sh:
 * `large_page FILE`. Event k (from 0) is GC/AllocationTick of 100,000 + k bytes, every fourth one
 * DiskIO/Read, and every hundred-thousandth one Exception/Start.
 */
#include "export/export.h"
#include "tests/support/incident_samples.h"

#include <stdio.h>

#define COUNT 1000000u

static int add_event(struct incident *in, uint32_t thread, uint32_t k)
{
	const struct event_field fields[] = {
		{.name = "AllocationAmount", .type = FIELD_UINT, .v.u = 100000 + k},
		{.name = "TypeName", .type = FIELD_TEXT,
		 .v.text = k % 3 ? "System.String" : "Cart"},
		{.name = "HeapIndex", .type = FIELD_UINT, .v.u = k % 8}};
	const struct incident_event e = {
		.time_ns = in->head.t0_ns + (in->head.t1_ns - in->head.t0_ns) / COUNT * k,
		.kind = EVENT_GENERIC, .thread = thread, .stack = STACK_NONE, .cpu = CPU_NONE,
		.provider = "Microsoft-Windows-DotNETRuntime", .nfields = 3,
		.name = k % 100000 == 0 ? "Exception/Start"
			: k % 4 == 1    ? "DiskIO/Read" : "GC/AllocationTick"};

	return incident_add_event(in, &e, fields);
}

int main(int argc, char **argv)
{
	const struct export_options opt = {.annotate = true, .ids = true};
	struct incident in = {0};
	struct out *out = NULL;
	struct err err = {0};
	uint32_t k;
	int rc;

	if (argc != 2)
		return 2;
	rc = sample_large(&in, COUNT, 20000, 24, 100);
	for (k = 0; !rc && k < COUNT; k++)
		rc = add_event(&in, k % 100, k);
	if (!rc)
		rc = out_open(argv[1], true, &out, &err);
	if (!rc)
		rc = exporter_by_name("html")->write(&in, &opt, out, &err);
	if (out)
		rc = out_close(out, &err) || rc;
	incident_free(&in);
	if (rc)
		fprintf(stderr, "large_page: %s\n", err.text);
	return rc ? 1 : 0;
}
