#include "source/etw/record_windows.h"

#include <string.h>

static void put_items(const EVENT_RECORD *event, struct etw_record *out)
{
	uint32_t i;

	for (i = 0; i < event->ExtendedDataCount && out->nitems < ETW_ITEMS_MAX; i++) {
		const EVENT_HEADER_EXTENDED_DATA_ITEM *item = &event->ExtendedData[i];

		out->items[out->nitems++] = (struct etw_item){
			item->ExtType, item->DataSize, (const uint8_t *)(uintptr_t)item->DataPtr};
	}
}

void etw_record_of(const EVENT_RECORD *event, struct etw_record *out)
{
	const EVENT_HEADER *h = &event->EventHeader;
	const EVENT_DESCRIPTOR *d = &h->EventDescriptor;

	memset(out, 0, offsetof(struct etw_record, items));
	out->ticks = h->TimeStamp.QuadPart;
	out->pid = h->ProcessId;
	out->tid = h->ThreadId;
	out->cpu = h->Flags & EVENT_HEADER_FLAG_PROCESSOR_INDEX
			   ? event->BufferContext.ProcessorIndex
			   : event->BufferContext.ProcessorNumber;
	out->header = h->Flags & EVENT_HEADER_FLAG_CLASSIC_HEADER  ? ETW_CLASSIC
		      : h->Flags & EVENT_HEADER_FLAG_TRACE_MESSAGE ? ETW_MESSAGE
								   : ETW_MANIFEST;
	out->pointer_bytes = h->Flags & EVENT_HEADER_FLAG_32_BIT_HEADER ? 4 : 8;
	memcpy(out->guid.bytes, &h->ProviderId, sizeof(out->guid.bytes));
	out->id = d->Id;
	out->version = d->Version;
	out->opcode = d->Opcode;
	out->nbytes = h->Size;
	out->payload = event->UserData;
	out->payload_bytes = event->UserDataLength;
	put_items(event, out);
}
