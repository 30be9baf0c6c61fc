/*
 * The control protocol: how `recorder status`, `snapshot`, `stop` and `abort` talk to a running recorder.
 *
 * The recorder listens at "<store>.ctl" and answers each request, a JSON object on one line, with another:
 *
 *	{"cmd":"status"}                        {"state":"recording", ...}
 *	{"cmd":"snapshot","reason":"TEXT"}      {"text":"..."}
 *	{"cmd":"stop"}  {"cmd":"abort"}         {"text":"..."}
 *
 * "reason" may be missing. "text" is a sentence for people: "a snapshot is being written". A refusal is
 * {"error":"sentence"}. The answer to status has these keys, with units in their names; what the
 * recorder does not know is left out:
 *
 *	state           text: "recording", "stopping"
 *	note            text: what is wrong or missing, as a full disk or privileges; "" = nothing
 *	store           text: path
 *	pid  elapsed_s  samples  lost  history_s  incidents  cpu_ms  rss_kb
 *	ring_bytes  ring_max_bytes  held_bytes  held_max_bytes  store_bytes  store_max_bytes
 *	tables          array of {"table":"frames","used":N,"max":N}
 *	rules           array of {"rule":SPEC,"state":"armed","value":N|null,"limit":N|null,"text":T,
 *	                "nearest":N|null,"nearest_ago_s":N, "fired", "held_back" and, of events: "seen",
 *	                "matched", "dropped_by_process", "dropped_by_filter", "stops_without_start",
 *	                "starts_lost", "covered_by_incident"}
 */
#ifndef ENGINE_CONTROL_H
#define ENGINE_CONTROL_H

#define CONTROL_SUFFIX ".ctl"

#endif
