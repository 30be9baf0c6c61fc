/*
 * What the recorder says about itself among an incident's events: EVENT_GENERIC of OWN_PROVIDER. Rules
 * never see them.
 *
 *	Ring   at a firing: what the ring held then. SecondsHeld (double), Bytes, Samples (uint, the open
 *	       segment included), BytesPerSample (double, of sealed segments; 0 = none yet)
 */
#ifndef MODEL_OWN_EVENT_H
#define MODEL_OWN_EVENT_H

#define OWN_PROVIDER "Recorder"
#define OWN_RING "Ring"
#define OWN_RING_SECONDS "SecondsHeld"
#define OWN_RING_BYTES "Bytes"
#define OWN_RING_SAMPLES "Samples"
#define OWN_RING_BYTES_PER_SAMPLE "BytesPerSample"

#endif
