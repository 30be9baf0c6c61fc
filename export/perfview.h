/* PerfView's compact XML; the zip archive (perfview_zip.c) holds the same bytes. */
#pragma once

#include "export/export.h"

int perfview_xml_write(const struct incident *in, const struct export_options *opt,
		       struct out *out, struct err *err);
