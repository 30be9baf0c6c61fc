/*
 * The control protocol of `recorder status`, `snapshot`, `mark`, `reload`, `stop` and `abort`.
 *
 * A running recorder listens at "<store>.ctl". Request and answer are a JSON object on one line
 * each:
 *
 *	{"cmd":"status"}                        {"state":"recording", ...}
 *	{"cmd":"snapshot","reason":"TEXT"}      {"text":"..."}
 *	{"cmd":"mark","message":"TEXT"}         {"text":"..."}
 *	{"cmd":"reload"}                        {"text":"..."}
 *	{"cmd":"kept"}                          {"text":"..."}
 *	{"cmd":"flush"}                         {"flush":N}
 *	{"cmd":"stop"}  {"cmd":"abort"}         {"text":"..."}
 *	{"cmd":"top","until":"NS"}              {"store":P,"from":"NS","written":"NS","note":T}
 *
 * A flush brings the history up to now to the disk: it is done once "flushed" of status is N or
 * more. N is 0 where no history is written.
 *
 * Who made an incident out of the history says "kept": it is counted in "incidents" of status.
 *
 * "reason" may be missing. "text" is a sentence for people: "a snapshot is being written". A
 * refusal is {"error":"sentence"}. `top`: events since "from" can be read from the history beside
 * the path P, those until "written" already; "0" = none yet. It is asked again until "until", a
 * moment that has passed, is reached. These are moments of the wall clock in ns. The
 * answer to status has these keys, with units in their names; what the recorder does not know is
 * left out:
 *
 *	state           text: "recording", "stopping"
 *	note            text: what is wrong or missing, as a full disk or privileges; "" = nothing
 *	pending         text: what `recorder reload` left for a restart; "" = nothing
 *	store           text: path
 *	lost_by_kind    object of numbers by kind: {"kernel":N, "queue":N, ...}; see model/event.h
 *	flushed         see above
 *	pid  elapsed_s  samples  lost  history_s  incidents  cpu_ms  rss_kb
 *	ring_bytes  ring_max_bytes  held_bytes  held_max_bytes  store_bytes  store_max_bytes
 *	tables          array of {"table":"frames","used":N,"max":N}
 *	rules           array of {"rule":SPEC,"state":"armed","value":N|null,"limit":N|null,
 *	                "text":T,"nearest":N|null,"nearest_ago_s":N,"fired":N,"held_back":N} and,
 *	                for rules on events, counts: "seen", "matched", "dropped_by_process",
 *	                "dropped_by_filter", "stops_without_start", "starts_lost",
 *	                "covered_by_incident"
 *	homes           array of {"unit":T,"container":T,"pod":T,"service":T,"cpu_s":N}: CPU time of
 *	                programs; see engine/homes.h. Texts that are not known are left out
 */
#pragma once

#define CONTROL_SUFFIX ".ctl"
