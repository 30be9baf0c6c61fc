/*
 * Any bytes as what a service tells of itself. Its first line is the name that a rule gives, so a
 * corpus file is that line and then the text.
 */
#include "source/counter/prometheus.h"
#include "source/counter_name.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_part(const char *at, size_t len, const char *text, size_t n)
{
	if (len && (at < text || len > n || at > text + n - len))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = calloc(n + 1, 1);
	struct prometheus_name name = {.metric = "a", .metric_len = 1};
	struct prometheus_series s;
	struct prometheus_text t;
	struct err err;
	char *line;

	if (!text)
		return 0;
	memcpy(text, data, n);
	t = (struct prometheus_text){.text = text, .end = text + n};
	line = memchr(text, '\n', n);
	if (line) {
		*line = '\0';
		t.text = line + 1;
		if (!prometheus_counter_is(text) || prometheus_parse(text, &name, &err))
			name = (struct prometheus_name){.metric = "a", .metric_len = 1};
	}
	while (prometheus_next(&t, &s)) {
		check_part(s.name, s.name_len, text, n);
		check_part(s.labels, s.labels_len, text, n);
		check_part(s.help, s.help_len, text, n);
		prometheus_takes(&name, &s);
	}
	free(text);
	return 0;
}
