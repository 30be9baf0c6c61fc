#include "model/incident.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* Every text of a head, so that copying and freeing cannot forget one. */
static const size_t texts[] = {
	offsetof(struct incident_head, rule),
	offsetof(struct incident_head, reason),
	offsetof(struct incident_head, gap_reason),
	offsetof(struct incident_head, host),
	offsetof(struct incident_head, host_text),
	offsetof(struct incident_head, recorder_version),
	offsetof(struct incident_head, note),
};

#define NTEXTS COUNT_OF(texts)

static char *text_get(const struct incident_head *h, size_t i)
{
	char *text;

	memcpy(&text, (const char *)h + texts[i], sizeof(text));
	return text;
}

static void text_set(struct incident_head *h, size_t i, char *text)
{
	memcpy((char *)h + texts[i], &text, sizeof(text));
}

void incident_head_free(struct incident_head *h)
{
	size_t i;

	for (i = 0; i < NTEXTS; i++)
		free(text_get(h, i));
	memset(h, 0, sizeof(*h));
}

int incident_head_copy(const struct incident_head *from, struct incident_head *to)
{
	struct incident_head copy = *from;
	const char *text;
	char *own;
	size_t i, n;
	int rc = 0;

	for (i = 0; i < NTEXTS; i++)
		text_set(&copy, i, NULL);
	for (i = 0; i < NTEXTS && !rc; i++) {
		text = text_get(from, i);
		if (!text)
			continue;
		n = strlen(text) + 1;
		own = malloc(n);
		if (own)
			memcpy(own, text, n);
		else
			rc = ERR_MEMORY;
		text_set(&copy, i, own);
	}
	if (rc)
		incident_head_free(&copy);
	else
		*to = copy;
	return rc;
}

const char *incident_state_text(enum incident_state state)
{
	switch (state) {
	case INCIDENT_OPEN:
		return "open";
	case INCIDENT_COMPLETE:
		return "complete";
	case INCIDENT_PARTIAL:
		return "partial";
	}
	return "?";
}
