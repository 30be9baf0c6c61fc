/*
 * What show prints of an incident's ledger (model/ledger.h): one line in its head, and with
 * --losses tables by CPU and by second.
 */
#pragma once

#include "listing/sheet.h"
#include "model/ledger.h"

/* The line "Expected": "950 samples; 928 recorded, 0 lost, 22 unexplained (2.3 %)". */
void losses_line(const struct ledger *l, struct sheet *p);

/* For people: what the columns mean, one row per CPU, one per second. */
void losses_tables(const struct ledger *l, struct sheet *p);

/* One object per CPU and second, one a line. */
void losses_json(const struct ledger *l, struct sheet *p);
