#include "triggers/rise.h"

#include "base/os.h"

#include <string.h>

/* "5m" -> 300; 0 = it is no time. */
static double seconds_of(const char *text, size_t len)
{
	static const struct {
		const char *name;
		double sec;
	} units[] = {{"", 1}, {"s", 1}, {"sec", 1}, {"m", 60}, {"min", 60}, {"h", 3600},
		     {"d", 86400}};
	double v = 0;
	size_t n = number_prefix(text, len, "0123456789.", &v), i;

	while (n && n < len && text[n] == ' ')
		n++;
	for (i = 0; n && i < sizeof(units) / sizeof(units[0]); i++)
		if (strlen(units[i].name) == len - n &&
		    memcmp(units[i].name, text + n, len - n) == 0)
			return v * units[i].sec;
	return 0;
}

int rise_parse(struct rise *r, struct spec *s)
{
	const char *op = s->text + s->head_len, *end = op, *at;
	double sec;

	memset(r, 0, sizeof(*r));
	while (op > s->text && *op != '<' && *op != '>')
		op--;
	for (at = op; at + 4 <= end && memcmp(at, " in ", 4) != 0;)
		at++;
	if (at + 4 > end)
		return 0;
	while (end > at && end[-1] == ' ')
		end--;
	r->falls = *op == '<';
	sec = at + 4 < end ? seconds_of(at + 4, (size_t)(end - at - 4)) : 0;
	if (!(sec >= 1 && sec <= RISE_MAX_SEC))
		return spec_wrong(s, "after 'in' stands a time of 1 s to 30 days, as in "
				  "'>+20%% in 5m'");
	op += op[1] == '=' ? 2 : 1;
	while (op < at && *op == ' ')
		op++;
	if (*op != (r->falls ? '-' : '+'))
		return spec_wrong(s, "a change within a time is '>+NUMBER' for a rise or "
				  "'<-NUMBER' for a fall, as in '>+20%% in 5m'");
	r->within_ns = (uint64_t)(sec * (double)NS_PER_SEC);
	while (at > op && at[-1] == ' ')
		at--;
	r->percent = at[-1] == '%';
	s->head_len = (size_t)(at - s->text) - r->percent;
	return 0;
}

double rise_change(struct rise *r, double value, uint64_t time_ns)
{
	uint64_t slot_ns = r->within_ns / RISE_SLOTS + 1, now = time_ns / slot_ns + 1;
	double base = value;
	unsigned i;

	for (i = 0; i < RISE_SLOTS; i++) {
		/* RISE_SLOTS parts, this one among them. */
		if (r->slots[i].number + RISE_SLOTS <= now || r->slots[i].number > now)
			continue;
		if (r->falls ? r->slots[i].extreme > base : r->slots[i].extreme < base)
			base = r->slots[i].extreme;
	}
	i = now % RISE_SLOTS;
	if (r->slots[i].number != now) {
		r->slots[i].number = now;
		r->slots[i].extreme = value;
	} else if (r->falls ? value > r->slots[i].extreme : value < r->slots[i].extreme) {
		r->slots[i].extreme = value;
	}
	if (!r->percent)
		return value - base;
	return base > 0 ? 100 * (value - base) / base : 0;
}

void rise_forget(struct rise *r)
{
	memset(r->slots, 0, sizeof(r->slots));
}
