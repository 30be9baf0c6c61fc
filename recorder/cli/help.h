/* The files of cli/help/ as text, which the Makefile puts into gen/help_topics.c. */
#pragma once

extern const char topic_conf[], topic_evidence[], topic_export[], topic_fleet[],
	topic_history[], topic_http[], topic_linux[], topic_live[], topic_memory[],
	topic_privileges[], topic_runtimes[], topic_security[], topic_ship[], topic_store[],
	topic_thread_time[], topic_triggers[], topic_windows[];
