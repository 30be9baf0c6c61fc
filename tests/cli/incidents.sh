#!/bin/bash
# list, show, export, pin and delete on a store written by tests/programs/store_fixture.c.
set -u
. "$TOP/tests/support/cli.sh"
unset RECORDER_CONFIG
export RECORDER_STORE=$TMP/s.db XDG_STATE_HOME=$TMP/state HOME=$TMP

if ! "$BUILD/programs/store_fixture" s.db; then
	echo "not ok store_fixture: failed"
	exit 0
fi

# ---- list ----------------------------------------------------------------------------------------

expect list_is_for_people 0 '' list
check list_is_newest_first_with_a_heading sh -c \
	"awk 'NR == 2 && \$1 == 4 { ok = 1 } END { exit !ok }' out"
check list_marks_partial_and_pinned sh -c \
	"grep -q '\\[partial\\]' out && grep -q '\\[pinned\\]' out"
expect list_json 0 '' list --json
cp out list.json
if command -v jq >/dev/null; then
	check list_json_is_one_object_a_line sh -c '[ "$(jq -c . list.json | wc -l)" = 4 ]'
	check list_json_has_the_keys_that_tools_rely_on jq -e -s 'all(has("id") and has("uuid") and
		has("state") and has("trigger") and has("reason") and
		has("time_utc") and has("window_s")
		and has("samples") and has("lost") and has("bytes") and has("pinned"))' list.json
	check list_json_values jq -e -s '.[3] | .id == 1 and .samples == 1000 and .lost == 7 and
		.window_s == 17 and .state == "complete" and .pinned == false and
		.time_utc == "2026-01-02T03:04:05.678Z"' list.json
else
	echo "skip list_json_keys: no jq here"
fi
check head_closing_the_pipe_is_quiet bash -c \
	'"$RECORDER" list 2>err | head -n 1 >/dev/null; [ ! -s err ]'

# ---- events --------------------------------------------------------------------------------------

expect events_of_an_incident_are_counted 0 'of [0-9]* events' events --id 1 --count
expect events_of_an_incident_are_listed 0 'lost' events --id 1
check and_a_loss_says_of_what grep -q 'lost Name=kernel' out
expect events_have_one_place_to_come_from 2 'give one of them' events --id 1 --last 5m

# ---- remarks -------------------------------------------------------------------------------------

cp s.db remarks.db
remark='the pool was restarted; "really" <b>'
expect a_remark_is_kept 0 '' note --store remarks.db --id 1 "$remark"
expect and_shown_with_its_time 0 'Remarks.* 20[0-9-]*T[0-9:]*Z the pool was restarted' \
	show --store remarks.db --id 1
check a_second_is_a_line_of_its_own sh -c '"$RECORDER" note --store remarks.db --id 1 "two
lines" 2>err && "$RECORDER" show --store remarks.db --id 1 --json |
	jq -e ".remarks | split(\"\\n\") | length == 2 and (.[1] | endswith(\"Z two lines\"))"'
for verb in list 'report --id 1' 'list --json' 'export --id 1 --format jsonl -o -'; do
	check "${verb%% *}_shows_it" sh -c '"$RECORDER" '"$verb"' --store remarks.db 2>err |
		grep -q "two lines"'
done
check a_report_has_it sh -c '"$RECORDER" export --store remarks.db --id 1 -o r.html --force 2>err &&
	grep -q "pool was restarted; .*really.* &lt;b&gt;" r.html'
expect without_an_id_it_is_the_newest 0 'incident 4, the newest, has this remark now' \
	note --store remarks.db later
expect a_remark_needs_a_text 2 'the remark is missing' note --store remarks.db --id 1
expect of_an_incident_that_is_there 3 'no incident 99' note --store remarks.db --id 99 x
check a_salvaged_store_keeps_them sh -c '"$RECORDER" salvage remarks.db -o saved.db 2>err &&
	"$RECORDER" show --store saved.db --id 1 | grep -q "Z two lines"'

# ---- show ----------------------------------------------------------------------------------------

expect show_says_which_is_newest 0 'incident 4, the newest' show
expect show_an_incident 0 '' show --id 1
check show_says_what_fired grep -q '^Fired .*93.5, over its limit of 80' out
check show_says_why_the_window_differs grep -q 'the recorder had started 12 s before' out
check show_says_what_was_lost_in_words grep -q "7 samples (the kernel's buffer was full)" out
check show_names_the_hottest_function grep -qE '^ +600 +60.0 % +server!burn_alpha' out
check show_counts_inclusively grep -qE '^ +800 +80.0 % +server!main' out
check show_leaves_kernel_frames_out sh -c '! grep -q "do_page_fault" out'
expect show_kernel_frames_on_demand 0 'do_page_fault' show --id 1 --kernel
expect show_one_process 0 'batch \(200\)' show --id 1 --process batch
check show_of_one_process_has_no_other sh -c '! grep -q server out'
expect report_of_a_part_before_the_trigger 0 '; 10 s to 5 s before the trigger; ' \
	report --id 1 --from -10 --to -5
expect show_of_a_part_after_it 0 'Window +1 s to 4 s after the trigger' show --id 1 --from 1 --to 4
expect show_an_unknown_process_names_some 3 'server' show --id 1 --process nobody
expect show_an_empty_incident 0 'the machine was idle' show --id 3
expect show_a_partial_incident 0 'partial' show --id 4
expect show_json 0 '' show --id 1 --json
if command -v jq >/dev/null; then
	check show_json_has_its_keys \
		jq -e '.asked_pre_s == 120 and .asked_post_s == 5 and .pre_s == 12 and
		.post_s == 5 and .processes == 2 and .threads == 3 and
		.frames == 7 and .frames_named == 6
		and has("stacks") and .stack_quality.complete == 800 and
		.stack_quality.truncated == 0 and
		.stack_quality.broken == 20 and .lost_by_reason.kernel == 7 and
		.recorder.cpu_ms == 310 and
		.recorder.rss_kb == 41015' out
else
	echo "skip show_json_keys: no jq here"
fi

# ---- the terminal's width ------------------------------------------------------------------------

# on_terminal COLUMNS ARG...: run the recorder on a terminal of that width; its lines are in the
# file out
on_terminal()
{
	local columns=$1
	shift
	script -qec "stty cols $columns; NO_COLOR=1 '$RECORDER' $*" /dev/null </dev/null |
		tr -d '\r' >out
}
if command -v script >/dev/null && [ "$(script -qec 'stty cols 47; stty size' /dev/null </dev/null |
		tr -d '\r')" = '0 47' ]; then
	for columns in 40 60 80 132; do
		too_long=
		for words in list 'show --id 1' 'report --id 1' \
				'report --id 1 --by-name' 'report --id 1 --tree' \
			     'diff --base 1 --test 2'; do
			on_terminal $columns $words
			[ -s out ] && [ "$(LC_ALL=C.UTF-8 wc -L <out)" -le $columns ] ||
				too_long="$too_long $words;"
		done
		check lines_fit_a_terminal_of_${columns}_columns [ ! "$too_long" ]
	done
	on_terminal 40 report --id 1 --by-name
	check a_narrow_terminal_has_the_name_below_its_numbers sh -c \
		"grep -A1 '^    5000.0  50.0 %     6000.0  60.0 % *\$' out |
		grep -qx '    server!burn_alpha'"
	on_terminal 40 list --json
	check json_is_never_broken sh -c \
		'grep -c . list.json out | cut -d: -f2 | uniq | grep -qx 4 && cmp -s list.json out'
else
	echo "skip lines_fit_a_terminal: no script(1) here, or its terminal has no size"
fi
expect lines_into_a_pipe_are_whole 0 '' report --id 1 --by-name
check lines_into_a_pipe_have_all_columns grep -q 'WHEN  *FUNCTION' out

# ---- colour --------------------------------------------------------------------------------------

plain() { sed 's/\x1b\[[0-9]*m//g'; }
same=1
for words in list 'show --id 1' 'show --id 4' 'report --id 1 --tree' 'show --id 1 --losses' \
		'diff --base 1 --test 2'; do
	"$RECORDER" $words >without
	"$RECORDER" $words --color always >with
	grep -q "$(printf '\033')" without && same=
	cmp -s with without && same=
	plain <with | cmp -s - without || same=
done
check color_adds_sequences_and_changes_nothing [ "$same" ]
expect color_always_colors_a_pipe 0 '' show --id 1 --color always
check color_marks_labels_losses_and_shares sh -c \
	"cat -v out >seen && grep -q '^^\[\[1mFired^\[\[0m  ' seen &&
	grep -qF '^[[33m7 samples' seen && grep -qF '^[[1m60.0 %^[[0m  server!burn_alpha' seen"
expect color_is_not_in_json 0 '' list --json --color always
check color_is_not_in_json_at_all cmp out list.json
expect color_of_another_word_is_refused 2 'is not auto, always or never' list --color sometimes
if command -v script >/dev/null; then
	# colored ENVIRONMENT ARG...: succeed if the recorder prints escape sequences on a terminal
	colored()
	{
		local set=$1
		shift
		script -qec "env -u NO_COLOR TERM=xterm $set '$RECORDER' $*" /dev/null </dev/null |
			grep -q "$(printf '\033')"
	}
	check color_is_on_at_a_terminal colored '' list
	check color_is_on_with_an_empty_NO_COLOR colored NO_COLOR= list
	check color_respects_NO_COLOR eval '! colored NO_COLOR=1 list'
	check color_respects_a_dumb_terminal eval '! colored TERM=dumb list'
	check color_can_be_switched_off eval '! colored "" list --color never'
	check color_always_is_stronger_than_NO_COLOR colored NO_COLOR=1 list --color always
else
	echo "skip color_is_on_at_a_terminal: no script(1) here"
fi

# ---- export --------------------------------------------------------------------------------------

expect export_folded_to_stdout 0 '' export --id 1 -f
check export_folded_counts_every_sample sh -c \
	"[ \"\$(awk '{ n += \$NF } END { print n }' out)\" = 1000 ]"
expect export_without_kernel 0 '' export --id 1 -f --no-kernel
check export_without_kernel_has_none sh -c "! grep -q '_\\[k\\]' out"
check export_without_kernel_counts_every_sample sh -c \
	"[ \"\$(awk '{ n += \$NF } END { print n }' out)\" = 1000 ]"
expect export_one_process 0 '' export --id 1 -f --process server
check export_one_process_counts_its_samples sh -c \
	"[ \"\$(awk '{ n += \$NF } END { print n }' out)\" = 800 ]"
expect export_a_stretch_of_time 0 '' export --id 1 -f --from -1 --to 0
check export_a_stretch_of_time_counts_its_samples sh -c \
	"[ \"\$(awk '{ n += \$NF } END { print n }' out)\" = 58 ]"
expect export_chooses_the_format_by_suffix 0 '' export --id 1 -o a.perfView.xml
if command -v xmllint >/dev/null; then
	check export_xml_is_well_formed xmllint --noout a.perfView.xml
else
	echo "skip export_xml_is_well_formed: no xmllint here"
fi
expect export_does_not_overwrite 1 '--force' export --id 1 -o a.perfView.xml
expect export_overwrites_by_force 0 '' export --id 1 -o a.perfView.xml --force
check export_leaves_no_temporary_file [ ! -e a.perfView.xml.tmp ]
expect export_to_a_directory_that_is_missing 1 'no/such' export --id 1 -o no/such/a.folded
expect export_unknown_format_lists_the_formats 2 'folded.*perfview-xml' export --id 1 --format nope
expect export_unknown_suffix_lists_the_formats 2 'folded.*perfview-xml' export --id 1 -o a.b
expect export_to_stdout_wants_a_format 2 'no format was given' export --id 1
expect export_an_empty_incident_says_so 0 'holds no samples' export --id 3 -f
expect export_an_unknown_incident 3 'there is no incident 99.*4, 3, 2, 1' export --id 99 -f
expect export_the_newest_says_which 0 'incident 4, the newest' export -f
if command -v script >/dev/null; then
	script -qec "'$RECORDER' export --id 1 --format perfview-xml-zip" \
		typescript >/dev/null 2>&1 </dev/null
	check export_refuses_binary_on_a_terminal grep -q 'spoil the terminal' typescript
else
	echo "skip export_refuses_binary_on_a_terminal: no script(1) here"
fi

# ---- verify, salvage -----------------------------------------------------------------------------

expect verify_a_sound_store 0 'is sound: 4 incidents' verify
expect salvage_needs_a_name 2 'where to' salvage s.db
expect salvage_a_sound_store 0 'new.db has 4 incidents now' salvage s.db -o new.db
expect salvage_replaces_nothing 1 'exists already' salvage s.db -o new.db
check a_salvaged_store_has_the_same_incidents bash -c \
	'"$RECORDER" list --store new.db | diff - <("$RECORDER" list)'
"$RECORDER" verify --json >sound.json
"$RECORDER" salvage s.db -o json.db --json >salvaged.json
expect verify_takes_one_store 2 'two stores' verify new.db --store s.db
head -c 40960 /dev/zero | tr '\0' x | dd of=new.db bs=4096 seek=3 conv=notrunc 2>/dev/null
expect verify_a_damaged_store 1 'recorder salvage' verify new.db
expect salvage_what_is_left 0 'left.db has' salvage new.db -o left.db
expect verify_what_was_salvaged 0 'is sound' verify left.db

"$RECORDER" verify new.db --json >damaged.json 2>/dev/null
check verify_json_fails_too [ $? = 1 ]
if command -v jq >/dev/null; then
	check verify_json_of_a_sound_store jq -s -e 'length == 1 and (.[0] | del(.store)) ==
		{sound: true, findings: 0, incidents: 4, damaged_incidents: 0}' sound.json
	check verify_json_has_each_finding_and_the_whole jq -s -e '(.[:-1] | length) ==
		last.findings and last.findings > 0 and (last.sound | not) and
		all(.[:-1][]; .finding | length > 5)' damaged.json
	check salvage_json jq -e '. == {store: "s.db", new_store: "json.db", incidents: 4,
		partial_incidents: 0, unreadable_parts: 0}' salvaged.json
else
	echo "skip verify_json: no jq here"
fi

# ---- pin, delete ---------------------------------------------------------------------------------

expect pin 0 'incident 1 is pinned' pin --id 1
expect unpin 0 'incident 2 is unpinned' unpin --id 2
expect pin_an_unknown_incident 3 'no incident 99' pin --id 99
expect pin_without_a_number 2 'which incident' pin
expect delete_without_a_number 2 'which incident' delete
expect delete_two 0 'incident 2 is deleted' delete --id 2,3
expect delete_what_is_gone 3 'no incident 2' delete --id 2
expect show_survives_the_delete_of_its_neighbour 0 '' show --id 1
expect delete_the_others_although_one_is_missing 3 'incident 4 is deleted' \
	delete --id 99 --id 4 --id 1
expect list_of_an_empty_store_finds_nothing 3 'no incidents' list
expect show_of_an_empty_store_finds_nothing 3 'no incidents yet' show

# ---- stores that are none ------------------------------------------------------------------------

expect store_that_is_missing 3 'there is no store at none.db' list --store none.db
check a_missing_store_is_not_made [ ! -e none.db ]
echo 'not a store' >foreign.db
expect store_that_is_foreign 1 'foreign.db is not a store' list --store foreign.db
"$BUILD/programs/store_fixture" newer.db
if command -v sqlite3 >/dev/null; then
	sqlite3 newer.db "UPDATE meta SET value = 999 WHERE key = 'min_reader'"
	expect store_of_a_newer_version 1 'newer.db' list --store newer.db
	# One of its two segments is damaged: the other one is printed, and the exit code says that
	# it is not all.
	"$BUILD/programs/store_fixture" damaged.db
	sqlite3 damaged.db "UPDATE segment SET data = substr(data, 1, 40) WHERE id = 1"
	expect show_of_a_damaged_incident_says_which_part_is_missing 1 \
		'^Damaged +1 of its 2 segments.*500 samples' \
		show --store damaged.db --id 1
	check show_of_a_damaged_incident_shows_the_rest grep -qE '^Samples +500' out
	expect export_of_a_damaged_incident_warns 1 \
		'incident 1 is damaged: 1 of its 2 segments cannot be read' \
		export --store damaged.db --id 1 -o rest.folded
	check export_of_a_damaged_incident_writes_the_rest \
		awk '{ n += $NF } END { exit n != 500 }' rest.folded
	expect show_of_another_incident_is_not_concerned 0 '' show --store damaged.db --id 2
else
	echo "skip store_of_a_newer_version, damage: no sqlite3 shell here"
fi
expect own_store_by_default 3 'state/recorder|there is no store|no incidents|lib/recorder' \
	list --store "$TMP/state/x.db"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	mkdir -p closed && cp newer.db closed/s.db && chmod 700 closed && chmod 755 "$TMP"
	setpriv --reuid 65534 --clear-groups "$RECORDER" list --store "$TMP/closed/s.db" >out 2>err
	check store_of_another_user_says_whose_it_is grep -q 'run the same command with sudo' err
else
	echo "skip store_of_another_user_says_whose_it_is: not root, or no setpriv here"
fi
