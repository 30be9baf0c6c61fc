/* The files of export/report/ within the program: made by the Makefile, each ending in a NUL. */
#ifndef EXPORT_REPORT_FILES_H
#define EXPORT_REPORT_FILES_H

extern const char report_svg_js[];

#endif
