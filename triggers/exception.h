/*
 * StopOnException:REGEX[;Process=...]: a .NET exception is thrown (Exception/Start of
 * Microsoft-Windows-DotNETRuntime), caught or not. On Linux also a Java exception is made (provider
 * Java), and with ;Process= a C++ exception of these processes thrown (provider C++, without
 * messages).
 *
 * The expression is matched anywhere, with case, against "Type: Message" and against the type
 * alone, so that ^System\.IO\.IOException$ finds that very type. An empty expression matches every
 * throw; any other never matches an event that has neither a type nor a message.
 */
#pragma once

#include "triggers/trigger.h"

extern const struct trigger_ops exception_trigger;
