/*
 * StopOnException:REGEX[;Process=...]: a .NET exception is thrown (Exception/Start of
 * Microsoft-Windows-DotNETRuntime), caught or not; with ;Process= also one of C++ (Linux; provider C++,
 * without a message).
 *
 * The expression is matched, case-sensitively and anywhere, against "Type: Message" and against the
 * type alone, so that ^System\.IO\.IOException$ finds that very type. An empty one matches every throw;
 * another one never matches a throw without a type or message in the event.
 *
 * Source: design page triggers.md section 6.
 */
#ifndef TRIGGERS_EXCEPTION_H
#define TRIGGERS_EXCEPTION_H

#include "triggers/trigger.h"

extern const struct trigger_ops exception_trigger;

#endif
