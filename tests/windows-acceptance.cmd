@echo off
rem What Wine cannot show, tried on a real Windows; tests\README.md says what each step means.
rem Run it from an elevated prompt, in the folder of recorder.exe. It takes about six minutes and
rem leaves nothing behind but the folder that its last line names.
setlocal enabledelayedexpansion
set T=%TEMP%\recorder-acceptance-%RANDOM%
set R="%~dp0recorder.exe"
if not exist %R% set R="%CD%\recorder.exe"
if not exist %R% echo no recorder.exe here & exit /b 2
net session >nul 2>&1
if errorlevel 1 echo this prompt is not elevated & exit /b 2
mkdir "%T%"
if not exist "%T%" exit /b 2
cd /d "%T%"
set PASSED=0
set FAILED=0
wpr -profileint >interval-before.txt 2>&1

%R% check >check.txt 2>&1
set RC=%ERRORLEVEL%
call :is 1_check_exit_code %RC% 0
call :has 1_etw check.txt "etw"
call :has 1_counters check.txt "counters"
call :has 1_eventlog check.txt "eventlog"

set SPIN=$e=(Get-Date).AddSeconds(100); while((Get-Date) -lt $e){}
start "burn" /b /low powershell -NoProfile -Command "%SPIN%" >nul 2>&1
start "collect" /b %R% collect --max-collect-sec 10 --store a.db --log-file a.log
ping -n 5 127.0.0.1 >nul
logman query -ets >during.txt
ping -n 10 127.0.0.1 >nul
logman query -ets >after.txt
%R% show --store a.db >a.txt 2>&1
call :has 3_stored a.log "1 stored"
call :has 3_names_the_program a.txt "powershell"
call :hasnot 3_lost_nothing a.txt "kernel's buffer"
call :has 3_what_was_expected a.txt "Expected "
%R% export --store a.db -f -o a.folded >nul 2>&1
call :has 4_user_root a.folded "ntdll.dll"
call :has 4_kernel_frames a.folded "ntoskrnl.exe"
call :has 4_names a.folded "RtlUserThreadStart"
call :has 5_session_during during.txt "recorder-session-"
call :hasnot 5_session_after after.txt "recorder-session-"

start "killed" /b %R% collect --store k.db --log-file k.log
ping -n 4 127.0.0.1 >nul
%R% status --store k.db >status-k.txt 2>&1
rem State     recording for 3.1 s, process 4711
for /f "tokens=2 delims=," %%a in ('findstr /b /c:"State" status-k.txt') do set P=%%a
set P=%P: process =%
taskkill /f /pid %P% >nul 2>&1
ping -n 2 127.0.0.1 >nul
%R% abort --store k.db >abort.txt 2>&1
call :has 6_abort_stops_what_was_left abort.txt "stopped 1 session"
logman query -ets >after.txt
call :hasnot 6_nothing_is_left after.txt "recorder-session-"

start "one" /b %R% collect --max-collect-sec 5 --store b1.db --log-file b1.log
start "two" /b %R% collect --max-collect-sec 5 --store b2.db --log-file b2.log
ping -n 10 127.0.0.1 >nul
call :has 7_first_of_two b1.log "1 stored"
call :has 7_second_of_two b2.log "1 stored"
call :hasnot 7_first_has_samples b1.log "done: 0 samples"
call :hasnot 7_second_has_samples b2.log "done: 0 samples"

%R% collect --freq 1000 --max-collect-sec 5 --store f1.db --log-file f1.log
%R% collect --freq 99 --max-collect-sec 5 --store f2.db --log-file f2.log
%R% show --store f1.db >f1.txt 2>&1
%R% show --store f2.db >f2.txt 2>&1
call :has 8_at_1000_hz f1.txt "one every 1 ms"
call :has 8_at_99_hz f2.txt "one every 10"
findstr /b /c:"Samples" f1.txt f2.txt

set RULE="/StopOnPerfCounter:Processor:%% Processor Time:_Total>5" --delay-after-trigger-sec 1
%R% collect --max-collect-sec 40 --store cpu.db --log-file cpu.log %RULE%
call :has 10_counter_rule_fires cpu.log "fired: Processor"
%R% counters Processor >counters.txt 2>&1
call :has 11_counters counters.txt "Processor Time:_Total"
%R% check "/StopOnPerfCounter:Process:Working Set:pid=%P%>1" --store x.db >pid.txt 2>&1
call :has 12_a_process_that_is_gone_is_absent pid.txt "does not exist now"

set RULE=/StopOnEventLogMessage:acceptance --delay-after-trigger-sec 0
set OPTIONS=--source none --max-collect-sec 20
start "log" /b %R% collect %OPTIONS% --store log.db --log-file log.log %RULE%
ping -n 4 127.0.0.1 >nul
eventcreate /t error /id 77 /l application /so recorder-acceptance /d acceptance >nul
ping -n 4 127.0.0.1 >nul
call :has 14_log_event_fires log.log "fired:"

set RULE="/StopOnProcess:cmd;ExitCode=3" --delay-after-trigger-sec 0
start "exit" /b %R% collect --max-collect-sec 20 --store exit.db --log-file exit.log %RULE%
ping -n 5 127.0.0.1 >nul
cmd /c exit 3
ping -n 5 127.0.0.1 >nul
call :has 15_exit_code_fires exit.log "ended with code 3"

>svc.conf echo store = %T%\svc.db
>>svc.conf echo collect-multiple = 1000
%R% service install --config "%T%\svc.conf" --service-name recorder-acceptance
call :is 16_install %ERRORLEVEL% 0
sc qfailure recorder-acceptance >qfailure.txt
call :has 16_recovery qfailure.txt "RESTART"
%R% service start --service-name recorder-acceptance
call :is 16_start %ERRORLEVEL% 0
ping -n 4 127.0.0.1 >nul
%R% status --store svc.db >status.txt 2>&1
call :is 16_status %ERRORLEVEL% 0
%R% service stop --service-name recorder-acceptance
call :is 16_stop %ERRORLEVEL% 0
%R% list --store svc.db >svc.txt 2>&1
call :is 16_store %ERRORLEVEL% 0
%R% service uninstall --service-name recorder-acceptance
call :is 16_uninstall %ERRORLEVEL% 0

%R% collect /ThreadTime --max-collect-sec 10 --store tt.db --log-file tt.log
call :has 20_thread_time tt.log "1 stored"
%R% show --store tt.db >tt.txt 2>&1
findstr /b /c:"Lost" tt.txt
findstr /b /c:"Recorder" tt.txt

set PROVIDER=Microsoft-Windows-Kernel-Registry
%R% collect /Providers:%PROVIDER% --max-collect-sec 5 --store reg.db --log-file reg.log
%R% export --store reg.db --format events-csv -o reg.csv >nul 2>&1
call :has 21_names_of_a_manifest reg.csv "%PROVIDER%"

start "ping" /b ping -n 60 127.0.0.1 >nul
ping -n 2 127.0.0.1 >nul
%R% stacks -p ping >stacks.txt 2>&1
call :is 25_stacks %ERRORLEVEL% 0
call :has 25_from_where_threads_begin stacks.txt "RtlUserThreadStart"
call :hasnot 25_whole stacks.txt "[broken]"
%R% stacks -p ping --store pic.db >pic.txt 2>&1
call :has 30_picture_is_stored pic.txt "stored as incident 1"
%R% export --store pic.db --id 1 -f -o pic.folded >nul 2>&1
call :has 30_picture_is_read pic.folded "RtlUserThreadStart"
set OPTIONS=--source sampler --record-process ping --max-collect-sec 5
%R% collect %OPTIONS% --store st.db --log-file st.log
call :has 26_sampler_takes_stacks st.log "stacks were taken"
call :has 26_stored st.log "1 stored"

set L=%T%\long
set NAME=a-folder-whose-name-is-rather-long-so-that-the-path-gets-over-the-limit
for /l %%i in (1,1,6) do set L=!L!\%NAME%
%R% collect --source none --max-collect-sec 1 --store "%L%\long.db" --log-file long.log
call :is 23_long_path %ERRORLEVEL% 0
cmd /c rmdir /s /q "\\?\%T%\long" >nul 2>&1

wpr -profileint >interval-after.txt 2>&1
fc interval-before.txt interval-after.txt >nul 2>&1
call :is 31_sampling_interval_as_before %ERRORLEVEL% 0
set OPTIONS=--freq 1000 --max-cpu-percent 0.001 --max-collect-sec 50
%R% collect %OPTIONS% --store low.db --log-file low.log
call :has 32_steps_down low.log "sampling continues at 49 Hz"
%R% show --store low.db >low.txt 2>&1
call :has 32_and_marks_it low.txt "on 49 Hz"
wpr -profileint >interval-after.txt 2>&1
fc interval-before.txt interval-after.txt >nul 2>&1
call :is 32_sampling_interval_as_before %ERRORLEVEL% 0

set RULE="/StopOnEtwEvent:Windows Kernel Trace/DiskIO/Write;FieldFilter=DiskServiceTimeMSec>=0"
start "disk" /b %R% collect --max-collect-sec 30 --store disk.db --log-file disk.log %RULE%
ping -n 4 127.0.0.1 >nul
copy /b /y %R% disk.tmp >nul
ping -n 10 127.0.0.1 >nul
%R% stop --store disk.db >nul 2>&1
call :has 35_disk_rule_fires disk.log "fired: Windows Kernel Trace/DiskIO/Write"
call :has 35_disk_time_is_computed disk.log "DiskServiceTimeMSec="
set RULE="/StopOnEtwEvent:Windows Kernel/Registry/SetValue;FieldFilter=ValueName~acceptance"
start "key" /b %R% collect --max-collect-sec 15 --store key.db --log-file key.log %RULE%
ping -n 4 127.0.0.1 >nul
reg add HKCU\Software\recorder-acceptance /v acceptance /d 1 /f >nul 2>&1
reg delete HKCU\Software\recorder-acceptance /f >nul 2>&1
ping -n 7 127.0.0.1 >nul
call :has 36_registry_rule_fires key.log "ValueName=acceptance"
%R% collect /KernelEvents:Verbose --max-collect-sec 5 --store v.db --log-file v.log
%R% export --store v.db --format events-csv -o v.csv >nul 2>&1
call :has 37_stored v.log "1 stored"
call :has 37_files v.csv "FileIO/Create"
call :has 37_registry v.csv "Registry/"
call :has 37_page_faults v.csv "Memory/"
set OPTIONS=/ClrEvents:Default /ClrEventLevel:Informational /TplEvents:Default
%R% collect %OPTIONS% --max-collect-sec 5 --store clr.db --log-file clr.log
call :has 38_dotnet_and_its_tasks clr.log "1 stored"

start "waitfor" /b %windir%\SysWOW64\waitfor.exe /t 20 acceptance >nul 2>&1
ping -n 3 127.0.0.1 >nul
%R% stacks -p waitfor >waitfor.txt 2>&1
call :is 39_stacks_of_a_32_bit_program %ERRORLEVEL% 0
call :has 39_code_of_32_bits waitfor.txt "waitfor.exe!"
call :hasnot 39_not_broken waitfor.txt "[broken]"
call :hasnot 39_nothing_of_wow64 waitfor.txt "wow64"

echo %PASSED% passed, %FAILED% failed; what was recorded is in %T%
if %FAILED%==0 exit /b 0
exit /b 1

:is
if "%2"=="%3" goto passed
echo failed %1: %2 instead of %3
goto failed

:has
findstr /l /c:%3 %2 >nul 2>&1
if not errorlevel 1 goto passed
echo failed %1: no %3 in %T%\%2
goto failed

:hasnot
findstr /l /c:%3 %2 >nul 2>&1
if errorlevel 1 goto passed
echo failed %1: %3 in %T%\%2
goto failed

:passed
set /a PASSED+=1
echo passed %1
exit /b 0

:failed
set /a FAILED+=1
exit /b 0
