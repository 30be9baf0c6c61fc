/*
 * What a program that uses OpenTelemetry publishes about itself for others to read: its resource,
 * of which service.name is wanted.
 *
 * A mapping that /proc/PID/maps calls [anon_shmem:OTEL_CTX], [anon:OTEL_CTX] or /memfd:OTEL_CTX
 * begins with, in the program's byte order (ours):
 *
 *	char     signature[8]      "OTEL_CTX"
 *	uint32_t version           2
 *	uint32_t payload_bytes
 *	uint64_t published_ns      0 = is being changed
 *	uint64_t payload           its address
 *
 * The payload is protobuf: ProcessContext { Resource resource = 1; ... }, Resource { KeyValue
 * attributes = 1; ... }, KeyValue { string key = 1; AnyValue value = 2 }, AnyValue { string
 * string_value = 1; ... }. Source: OpenTelemetry's OTEP 4719; common.proto and resource.proto of
 * opentelemetry-proto 1.11; protobuf.dev/programming-guides/encoding. All of it is what a stranger
 * writes. No state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OTEL_HEADER_BYTES 32u
#define OTEL_PAYLOAD_MAX ((size_t)16384)

/* Where the payload is; false when these bytes are no header, or are being changed. */
bool otel_header(const uint8_t header[OTEL_HEADER_BYTES], uint64_t *payload, size_t *n);

/*
 * service.name, as a line of valid text, cut at out_bytes - 1.
 * returns  false when there is none: out is untouched
 */
bool otel_service(const uint8_t *payload, size_t n, char *out, size_t out_bytes);
