/*
 * Events about the recorder itself in an incident: EVENT_GENERIC of OWN_PROVIDER. Rules never see
 * them.
 *
 *	Ring     at a firing: what the ring held then. SecondsHeld (double), Bytes,
 *	         Samples (uint, including the open segment), BytesPerSample (double, of sealed
 *	         segments; 0 = none yet)
 *	Evicted  at a firing: CPU samples of the requested window that the ring had already evicted.
 *	         Second (int, from the trigger, rounded down), Samples (uint); the event's cpu,
 *	         or none for all CPUs
 *	Stall    a source, or the whole recorder, stood still, or what a name is read from did not
 *	         answer; or it does again. Text
 *	Memory   a step taken to stay below --max-rss-mb. Text
 *	Clock    the wall clock was set, or the machine slept. Text
 *	Mark     what somebody said by `recorder mark`. Text
 */
#pragma once

#define OWN_PROVIDER "Recorder"
#define OWN_RING "Ring"
#define OWN_RING_SECONDS "SecondsHeld"
#define OWN_RING_BYTES "Bytes"
#define OWN_RING_SAMPLES "Samples"
#define OWN_RING_BYTES_PER_SAMPLE "BytesPerSample"

#define OWN_STALL "Stall"
#define OWN_CLOCK "Clock"
#define OWN_MARK "Mark"
#define OWN_RULE "Rule"                      /* every 10 s: its values, and what it has seen */
#define OWN_STOP_REASON "StopReason"         /* what fired, and why */
#define OWN_MEMORY "Memory"
#define OWN_TEXT "Text"                      /* of Stall, Memory, Clock and Mark */

#define OWN_EVICTED "Evicted"
#define OWN_EVICTED_SECOND "Second"
#define OWN_EVICTED_SAMPLES "Samples"
