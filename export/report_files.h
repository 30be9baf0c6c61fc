/*
 * The files of export/report/ as text in the program, each ending in NUL. The Makefile makes them;
 * it removes "import" lines and "export" words, because the scripts of a page become one script.
 */
#pragma once

extern const char report_svg_js[];           /* of the SVG flame graph */

extern const char report_report_css[];
extern const char report_report_html[];      /* what follows the header in words */
extern const char report_data_js[];          /* in this order */
extern const char report_table_js[];
extern const char report_flame_js[];
extern const char report_timeline_js[];
extern const char report_events_js[];
extern const char report_report_js[];

/* Of a diff: with data.js, table.js and flame.js before it. */
extern const char report_diff_html[];
extern const char report_diff_js[];
