/*
 * Where a process lives, in the words of those who run it: its container, systemd unit, Kubernetes
 * pod, and the service that it says it is.
 *
 * A process has one text about it, which segments' processes and stores keep:
 *
 *	CGROUP             the path of its control group
 *	CGROUP\nSERVICE    and its service.name (symbol/otel.h)
 *
 * Everything else is read from the path, by its components, the innermost that says something:
 *
 *	docker-ID.scope, cri-containerd-ID.scope, crio-ID.scope, libpod-ID.scope, /docker/ID,
 *	/libpod_parent/libpod-ID, SLICE:cri-containerd:ID      container: 64 hexadecimal digits
 *	podUID, kubepods-burstable-podUID.slice (- as _)       pod: a UUID, or 32 digits (static)
 *	NAME.service, NAME.scope, else NAME.slice              unit
 *
 * Monitors of containers (crio-conmon-ID.scope, libpod-conmon-ID.scope) are not in the container.
 * Sources: moby daemon/oci_linux.go and containerd/cgroups (docker, cgroupfs and systemd);
 * containerd internal/cri/server/helpers.go, getCgroupsPath; cri-o internal/config/cgmgr; podman
 * libpod/container_internal_common.go, getOCICgroupPath; kubernetes
 * pkg/kubelet/cm/cgroup_manager_linux.go and pod_container_manager_linux.go; systemd
 * src/basic/cgroup-util.c. Paths are what anybody who may make control groups calls them. No state.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

#define HOME_TEXT_MAX 4096u
#define HOME_PART_BYTES 256u                 /* with NUL; a unit has at most 255: systemd.unit(5) */

/* HOME_NONE: none of them, a process itself. Its texts are empty. */
enum home_key { HOME_NONE, HOME_CONTAINER, HOME_UNIT, HOME_POD, HOME_SERVICE, HOME_KEYS };

struct home {
	char of[HOME_KEYS][HOME_PART_BYTES];     /* "" = none */
};

/* "container", "unit", "pod", "service" */
const char *home_key_text(enum home_key key);

void home_read(const char *text, struct home *out);
/* The length of the control group's path at the start of a text. */
size_t home_cgroup_bytes(const char *text);

/*
 * Is this its container, pod, unit or service? A container also by the first 4 and more digits; a
 * unit by any of the path (user.slice has all that is below), and without ".service".
 */
bool home_is(const char *text, enum home_key key, const char *wanted);
/* "unit:nginx" and so on: which key, and what follows it; HOME_NONE = no such prefix. */
enum home_key home_key_of(const char *who, const char **wanted);

/*
 * Append the path out of the text of /proc/PID/cgroup: of version 2, else systemd's, else the first
 * that is not the root. Nothing when the process is in the root of all. Source: cgroups(7).
 */
void home_put_cgroup(const char *proc_text, struct buf *out);
