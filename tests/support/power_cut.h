/*
 * A power cut below SQLite: what a disk may hold afterwards.
 *
 * Files that SQLite opens between power_cut_install() and power_cut_remove() are watched. What was
 * written since a file's last sync may or may not have reached the disk, sector by sector.
 * power_cut_after() has an image made of that at a later write: copies of the files, in another
 * directory, where each sector of 512 bytes that was not synced is drawn by lot. Writing goes on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

void power_cut_install(void);
void power_cut_remove(void);

/* At the n-th write from now on (0 = the next), copy all watched files into this directory. */
void power_cut_after(long writes, const char *dir, uint64_t seed);
/* Whether that was reached. */
bool power_cut_happened(void);
