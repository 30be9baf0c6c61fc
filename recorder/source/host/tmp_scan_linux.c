#include "source/host/tmp_scan_linux.h"

#define WAIT_NS (20 * NS_PER_MS)             /* a search takes 0.1 ms, when /tmp is not full */
#define REST_PER_CPU_TIME 50u
#define REST_MAX_NS (30 * NS_PER_SEC)

static void run_search(struct job *job)
{
	struct tmp_search *search = (struct tmp_search *)job;
	uint64_t began_ns = os_thread_cpu_ns();

	search->run(search);
	search->cpu_ns = os_thread_cpu_ns() - began_ns;
}

bool tmp_search_at(struct tmp_search *search, uint64_t place)
{
	uint32_t i, of_owner = 0;

	for (i = 0; place && i < search->nskipped; i++) {
		if (search->skipped[i] == place)
			return false;
		of_owner += (uint32_t)search->skipped[i] == (uint32_t)place;
	}
	if (of_owner >= TMP_SCAN_HUNG_OF_OWNER)
		return false;
	atomic_store_explicit(&search->at, place, memory_order_relaxed);
	return true;
}

bool tmp_scan_is_free(const struct tmp_scan *s, uint64_t now_ns)
{
	return !s->now && now_ns >= s->rest_until_ns && s->nhung < POOL_STUCK_MAX;
}

void tmp_scan_begin(struct tmp_scan *s, struct tmp_search *search)
{
	search->job.run = run_search;
	search->job.what = "a search of /tmp";
	job_init(&search->job);
	for (search->nskipped = 0; search->nskipped < s->nhung; search->nskipped++)
		search->skipped[search->nskipped] = atomic_load_explicit(
			&s->hung[search->nskipped]->at, memory_order_relaxed);
	s->now = search;
	pool_put(s->pool, &search->job);
	pool_wait(s->pool, &search->job, WAIT_NS);
}

struct tmp_search *tmp_scan_done(struct tmp_scan *s, uint64_t now_ns)
{
	struct tmp_search *search = s->now;
	const struct job *job;
	uint64_t rest_ns;
	uint32_t i;

	while ((job = pool_look(s->pool, os_now_ns())) != NULL)
		if (s->now && job == &s->now->job) {
			log_line(s->log, LOG_WARN,
				 "a search for %s programs hangs: a file system below /tmp, or "
				 "one that has a socket, does not answer; what is there is left "
				 "alone until it does", s->programs);
			s->hung[s->nhung++] = s->now;
			s->now = NULL;
		}
	for (i = s->nhung; i--;)
		if (job_done(&s->hung[i]->job)) {
			job_drop(&s->hung[i]->job);
			s->hung[i] = s->hung[--s->nhung];
		}
	if (!s->now || !job_done(&search->job))
		return NULL;
	s->now = NULL;
	rest_ns = search->cpu_ns * REST_PER_CPU_TIME;
	s->rest_until_ns = now_ns + (rest_ns < REST_MAX_NS ? rest_ns : REST_MAX_NS);
	return search;
}

uint64_t tmp_scan_due_ns(const struct tmp_scan *s, uint64_t now_ns, uint64_t due_ns)
{
	uint64_t soonest_ns = s->now || s->nhung == POOL_STUCK_MAX ? now_ns + WAIT_NS
								    : s->rest_until_ns;

	return due_ns > soonest_ns ? due_ns : soonest_ns;
}

void tmp_scan_close(struct tmp_scan *s)
{
	if (s->now)
		job_drop(&s->now->job);
	s->now = NULL;
	while (s->nhung)
		job_drop(&s->hung[--s->nhung]->job);
}
