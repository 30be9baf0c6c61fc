#include "source/jvm/options.h"

#include "source/jvm/hsperf.h"
#include "symbol/jvm.h"
#include "symbol/symbol_open.h"

#define TEXT_MAX_BYTES ((size_t)1 << 20)     /* of arguments or environment */
#define PERF_TEXT_MAX_BYTES 1023u            /* a text of this length may have been truncated */

/* Ask its performance data. returns  false when the answer is missing or truncated */
static bool ask_performance_data(uint32_t pid, bool *keeps)
{
	const char *flags = "", *arguments = "";
	size_t nflags = 0, narguments = 0;
	struct buf data = {0};
	bool said;

	symbol_jvm_data(pid, HSPERF_MAX_BYTES, &data);
	said = hsperf_text(data.data, data.len, "java.rt.vmArgs", &arguments, &narguments);
	hsperf_text(data.data, data.len, "java.rt.vmFlags", &flags, &nflags);
	*keeps = said && jvm_said_frame_pointers(flags, nflags, arguments, narguments);
	buf_free(&data);
	return said && nflags < PERF_TEXT_MAX_BYTES && narguments < PERF_TEXT_MAX_BYTES;
}

bool jvm_options_keep_frame_pointers(uint32_t pid)
{
	struct buf arguments = {0}, environment = {0};
	bool keeps;

	if (ask_performance_data(pid, &keeps))
		return keeps;
	symbol_start_text(pid, TEXT_MAX_BYTES, &arguments, &environment);
	keeps |= jvm_keeps_frame_pointers(buf_text(&arguments), arguments.len,
					  buf_text(&environment), environment.len);
	buf_free(&arguments);
	buf_free(&environment);
	return keeps;
}
