/*
 * What show prints of an incident's ledger (model/ledger.h): one line in its head, and with
 * --losses tables by CPU and by second.
 */
#pragma once

#include "model/ledger.h"

/* "950 samples; 928 of them recorded, 0 lost, 22 unexplained (2.3 %)", or why that is not known. */
void losses_line(const struct ledger *l, struct buf *out);

/* For people: what the columns mean, one row per CPU, one per second. */
void losses_tables(const struct ledger *l, struct buf *out);

/* One object per CPU and second, one a line. */
void losses_json(const struct ledger *l, struct buf *out);
