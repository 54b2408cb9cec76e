/* SPDX-License-Identifier: MIT
 *
 * A page for the purchase file: one file, no scripts, nothing from elsewhere, as good on paper as on
 * a screen. A verdict is a word first; its colour only repeats it, for a printer may have none.
 */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lot.h"
#include "report_fields.h"

static const char style[] =
	"body{font:11pt/1.4 Georgia,'Liberation Serif',serif;color:#111;background:#fff;"
	"max-width:62em;margin:2em auto;padding:0 1.5em}\n"
	"h1{font-size:1.7em;margin:0 0 .4em}h2{font-size:1.25em;margin:1.8em 0 .4em;"
	"border-bottom:1px solid #999;padding-bottom:.15em}h3{font-size:1.05em;margin:1.3em 0 .3em}\n"
	"table{border-collapse:collapse;width:100%;font-size:.9em;font-variant-numeric:tabular-nums}\n"
	"th,td{padding:.25em .5em;text-align:right;vertical-align:top}\n"
	"th{border-bottom:2px solid #444;font-weight:bold}\n"
	"tbody.arm{border-bottom:1px solid #bbb}\n"
	"tr{break-inside:avoid}tbody.arm{break-inside:avoid}thead{display:table-header-group}\n"
	"h2,h3{break-after:avoid}\n"
	".l{text-align:left}.v{text-align:left;font-weight:bold;white-space:nowrap}\n"
	"td.why{text-align:left;padding:0 .5em .5em 1.5em}\n"
	".why ul{margin:0;padding-left:1.1em}.note{color:#555}\n"
	".facts th{text-align:left;border:0;width:14em;font-weight:normal;color:#555}\n"
	".facts td{text-align:left;overflow-wrap:anywhere}\n"
	".verdict{border:2px solid #777;border-left-width:1em;padding:.6em 1em;font-size:1.1em}\n"
	".held{border-color:#1a7f37}.broken{border-color:#b31d28}.open{border-color:#9a6700}\n"
	".SAFE{color:#1a7f37}.UNSAFE{color:#b31d28}.INCONCLUSIVE{color:#855a00}\n"
	"code{font:.92em 'DejaVu Sans Mono',monospace;overflow-wrap:anywhere}\n"
	"dl{margin:.3em 0}dt{font-weight:bold;float:left;clear:left;width:9em}dd{margin:0 0 .3em 9em}\n"
	"section+section{break-before:page;border-top:3px double #444;margin-top:3em;padding-top:1em}\n"
	"@page{margin:16mm}@media print{body{margin:0;padding:0;max-width:none;font-size:9.5pt}\n"
	".SAFE,.UNSAFE,.INCONCLUSIVE{color:#000}}\n";

static void add_escaped(struct pp_buf *out, const char *text)
{
	for (; *text; text++) {
		char c = *text;

		if (c == '&')
			pp_buf_addf(out, "&amp;");
		else if (c == '<')
			pp_buf_addf(out, "&lt;");
		else if (c == '>')
			pp_buf_addf(out, "&gt;");
		else if (c == '"')
			pp_buf_addf(out, "&quot;");
		else
			pp_buf_add(out, c >= ' ' && c <= '~' ? &c : "?", 1);
	}
}

/* <element>text</element>, with a class unless it is "". */
static void add_element(struct pp_buf *out, const char *element, const char *class, const char *text)
{
	if (class[0])
		pp_buf_addf(out, "<%s class=\"%s\">", element, class);
	else
		pp_buf_addf(out, "<%s>", element);
	add_escaped(out, text);
	pp_buf_addf(out, "</%s>", element);
}

/* The class of a verdict's colour; arms that promise less have none (M8.6). */
static const char *class_of(enum pp_arm_verdict verdict, bool apart)
{
	if (apart)
		return "v";
	return verdict == PP_ARM_SAFE ? "v SAFE" : verdict == PP_ARM_UNSAFE ? "v UNSAFE" :
		verdict == PP_ARM_INCONCLUSIVE ? "v INCONCLUSIVE" : "v";
}

/* ---- facts -------------------------------------------------------------------------------- */

static void add_fact(struct pp_buf *out, const char *label, const char *value)
{
	if (!value[0])
		return;
	pp_buf_addf(out, "<tr>");
	add_element(out, "th", "", label);
	add_element(out, "td", "", value);
	pp_buf_addf(out, "</tr>\n");
}

static void add_facts(struct pp_buf *out, const struct pp_report_input *input)
{
	const struct pp_report_source *source = input->source;
	char text[300];
	size_t i;

	snprintf(text, sizeof(text), "%s: confidence/reliability in per cent; %u clean cuts an arm",
		input->verdict->criterion.text, input->verdict->clean_cuts_needed);
	pp_buf_addf(out, "<table class=\"facts\">\n");
	add_fact(out, "campaign began", source->started);
	add_fact(out, "criterion", text);
	for (i = 0; i < source->fact_count; i++)
		add_fact(out, source->facts[i].label, source->facts[i].value);
	pp_buf_addf(out, "</table>\n");
}

/* ---- tables of a drive -------------------------------------------------------------------- */

static void add_head(struct pp_buf *out, bool apart)
{
	pp_buf_addf(out, "<table><thead><tr><th class=\"l\">method</th><th>ops/s</th><th>p99</th>"
		"<th>cuts clean</th><th>not exposed</th><th>lost</th><th>void</th><th>open</th>"
		"<th>records acked</th>"
		"<th>lost</th><th>cuts that lose, at most</th><th class=\"l\">%s</th></tr></thead>\n",
		apart ? "result" : "verdict");
}

static void add_count(struct pp_buf *out, uint64_t n)
{
	pp_buf_addf(out, "<td>%llu</td>", (unsigned long long)n);
}

static void add_arm(struct pp_buf *out, const struct report_line *line)
{
	const struct pp_verdict_arm *arm = line->row.arm;
	const struct pp_speed_row *speed = line->row.speed;
	char ops[32], p99[32], bound[32];
	size_t i;

	pp_report_compact(ops, sizeof(ops), speed ? speed->ops_per_s : -1.0);
	pp_report_duration(p99, sizeof(p99), speed ? speed->latency_ns_p99 : -1);
	pp_report_share(bound, sizeof(bound), arm->loss_bound_95);
	pp_buf_addf(out, "<tbody class=\"arm\"><tr>");
	add_element(out, "td", "l", arm->key.method);
	pp_buf_addf(out, "<td>%s</td><td>%s</td>", ops, p99);
	add_count(out, arm->cuts_clean);
	add_count(out, arm->cuts_unexposed);
	add_count(out, arm->cuts_loss);
	add_count(out, arm->cuts_void);
	add_count(out, arm->cuts_open);
	add_count(out, arm->records_acked);
	add_count(out, arm->records_lost);
	add_element(out, "td", "", arm->verdict == PP_ARM_NA ? "-" : bound);
	add_element(out, "td", class_of(arm->verdict, line->apart), pp_arm_verdict_name(arm->verdict));
	pp_buf_addf(out, "</tr>\n");
	if (arm->reason_count) {
		pp_buf_addf(out, "<tr><td class=\"why\" colspan=\"12\"><ul>");
		for (i = 0; i < arm->reason_count; i++)
			add_element(out, "li", arm->reasons[i].blocks ? "" : "note",
				arm->reasons[i].text);
		pp_buf_addf(out, "</ul></td></tr>\n");
	}
	pp_buf_addf(out, "</tbody>\n");
}

static void add_losses(struct pp_buf *out, const struct report_line *lines, size_t count)
{
	bool head = false;
	size_t i, k;

	for (i = 0; i < count; i++) {
		const struct pp_verdict_arm *arm = lines[i].row.arm;
		char young[32], old[32];

		for (k = 0; k < PP_LOSS_CLASSES; k++) {
			if (!arm->lost[k])
				continue;
			if (!head)
				pp_buf_addf(out, "<h3>What was lost, by class and age</h3>\n<table><thead><tr>"
					"<th class=\"l\">method</th><th class=\"l\">workload</th>"
					"<th class=\"l\">class</th><th>records</th><th>acked before the end, at "
					"least</th><th>at most</th></tr></thead><tbody>\n");
			head = true;
			pp_report_duration(young, sizeof(young), arm->lost_age_ns_min);
			pp_report_duration(old, sizeof(old), arm->lost_age_ns_max);
			pp_buf_addf(out, "<tr>");
			add_element(out, "td", "l", arm->key.method);
			add_element(out, "td", "l", arm->key.workload);
			add_element(out, "td", "l", pp_loss_class_name((enum pp_loss_class)k));
			add_count(out, arm->lost[k]);
			pp_buf_addf(out, "<td>%s</td><td>%s</td></tr>\n", young, old);
		}
	}
	if (head)
		pp_buf_addf(out, "</tbody></table>\n<p class=\"note\">Ages are of all classes of an arm "
			"together; - where only a later record witnesses the loss.</p>\n");
}

static void add_within(struct pp_buf *out, const struct report_line *lines, size_t count)
{
	size_t i, k;

	pp_buf_addf(out, "<h3>How much was at risk</h3>\n<p class=\"note\">Records that were acked in the "
		"last moments before the power went, all cuts together: what the drive's cache may "
		"still have held.</p>\n<table><thead><tr><th class=\"l\">method</th>"
		"<th class=\"l\">workload</th>");
	for (k = 0; k < PP_WITHIN; k++)
		pp_buf_addf(out, "<th>last %u ms</th>", pp_within_ms[k]);
	pp_buf_addf(out, "</tr></thead><tbody>\n");
	for (i = 0; i < count; i++) {
		const struct pp_verdict_arm *arm = lines[i].row.arm;

		if (arm->verdict == PP_ARM_NA)
			continue;
		pp_buf_addf(out, "<tr>");
		add_element(out, "td", "l", arm->key.method);
		add_element(out, "td", "l", arm->key.workload);
		for (k = 0; k < PP_WITHIN; k++)
			add_count(out, arm->acked_within[k]);
		pp_buf_addf(out, "</tr>\n");
	}
	pp_buf_addf(out, "</tbody></table>\n");
}

/* One look: which policy of the write cache breaks which method. */
static void add_policies(struct pp_buf *out, const struct report_line *lines, size_t count)
{
	const char *names[PP_REPORT_POLICIES_MAX];
	size_t used = pp_report_policies(lines, count, names, PP_REPORT_POLICIES_MAX), i, k;
	char label[200];

	if (!used)
		return;
	pp_buf_addf(out, "<h3>Method by policy of the write cache</h3>\n<table><thead><tr>"
		"<th class=\"l\">method</th>");
	for (k = 0; k < used; k++)
		add_element(out, "th", "l", names[k]);
	pp_buf_addf(out, "</tr></thead><tbody>\n");
	for (i = 0; i < count; i++) {
		if (!pp_report_policy_row(lines, i))
			continue;
		pp_buf_addf(out, "<tr>");
		pp_report_policy_label(lines, count, i, label, sizeof(label));
		add_element(out, "td", "l", label);
		for (k = 0; k < used; k++) {
			const struct report_line *cell = pp_report_policy_cell(lines, count, i, names[k]);

			add_element(out, "td", cell ? class_of(cell->row.arm->verdict, cell->apart) : "l",
				cell ? pp_arm_verdict_name(cell->row.arm->verdict) : "-");
		}
		pp_buf_addf(out, "</tr>\n");
	}
	pp_buf_addf(out, "</tbody></table>\n");
}

static void add_drive(struct pp_buf *out, const struct report_line *lines, size_t count)
{
	const struct pp_arm_key *key = &lines[0].row.arm->key;
	char title[400];
	size_t i;

	snprintf(title, sizeof(title), "Drive %s%s%s%s%s", key->serial[0] ? key->serial : "(no serial)",
		key->model[0] ? ", " : "", key->model, key->firmware[0] ? ", firmware " : "",
		key->firmware);
	add_element(out, "h2", "", title);
	for (i = 0; i < count; i++) {
		const struct report_line *line = &lines[i], *last = i ? &lines[i - 1] : NULL;
		bool section = !last || last->apart != line->apart;

		if (section || strcmp(last->conditions, line->conditions) != 0) {
			pp_buf_addf(out, "%s", last ? "</table>\n" : "");
			if (section && line->apart)
				pp_buf_addf(out, "<h3>Controls, and others that do not promise to survive a "
					"cut</h3>\n");
			add_element(out, "p", "", line->conditions);
			add_head(out, line->apart);
		}
		add_arm(out, line);
	}
	pp_buf_addf(out, "</table>\n");
	add_policies(out, lines, count);
	add_losses(out, lines, count);
	add_within(out, lines, count);
}

/* ---- a campaign --------------------------------------------------------------------------- */

static void add_evidence(struct pp_buf *out, const struct pp_report_source *source)
{
	pp_buf_addf(out, "<h2>The evidence</h2>\n<table class=\"facts\">\n");
	add_fact(out, "folder", source->folder);
	add_fact(out, "SHA-256 of its SHA256SUMS", source->seal_sha256);
	add_fact(out, "seal", source->sealed ? "every file is as it was when it was sealed" :
		"DOES NOT FIT: files were changed, added or removed after they were sealed");
	pp_buf_addf(out, "</table>\n<p>To check it without machine, drive or power switch: "
		"<code>sha256sum SHA256SUMS</code> must give the sum above, <code>sha256sum -c "
		"SHA256SUMS</code> in the folder no difference, and <code>plugpull judge</code> with the "
		"folder the verdicts of this page.</p>\n");
}

static int add_campaign(struct pp_buf *out, const struct pp_report_input *input)
{
	static const char *const classes[] = { "verdict held", "verdict broken", "verdict open" };
	size_t count = input->verdict->arm_count, i, k;
	struct report_line *lines = pp_report_lines(input);
	const char *marks[PP_MARKS_MAX + 1];
	char text[PP_SENTENCE_BYTES];

	if (!lines)
		return -1;
	pp_buf_addf(out, "<section>\n<h1>Power-cut test: ");
	add_escaped(out, input->source->name[0] ? input->source->name : input->source->folder);
	pp_buf_addf(out, "</h1>\n");
	add_element(out, "p", classes[pp_verdict_exit(input->verdict)],
		pp_report_sentence(input->verdict, text, sizeof(text)));
	pp_report_marks(input->source, marks);
	for (i = 0; marks[i]; i++)
		add_element(out, "p", "verdict broken", marks[i]);
	add_facts(out, input);
	for (i = 0; i < count; i += k) {
		for (k = 1; i + k < count && pp_report_same_drive(&lines[i].row.arm->key,
			&lines[i + k].row.arm->key); k++)
			;
		add_drive(out, lines + i, k);
	}
	free(lines);
	add_element(out, "h2", "", "What it rests on");
	add_element(out, "p", "", pp_report_rests(input->verdict, text, sizeof(text)));
	add_element(out, "h2", "", "What it does not cover");
	add_element(out, "p", "", pp_report_not_covered(input->verdict, text, sizeof(text)));
	add_evidence(out, input->source);
	pp_buf_addf(out, "</section>\n");
	return 0;
}

/* ---- lots --------------------------------------------------------------------------------- */

static void add_lot(struct pp_buf *out, const struct pp_lot *lot)
{
	char text[1024], share[16];
	size_t i;

	snprintf(text, sizeof(text), "%s, firmware %s: %s", lot->key.model[0] ? lot->key.model :
		"(no model)", lot->key.firmware[0] ? lot->key.firmware : "(none)", lot->key.method);
	add_element(out, "h3", "", text);
	pp_report_conditions(&lot->key, text, sizeof(text));
	add_element(out, "p", "", text);
	pp_buf_addf(out, "<ul>");
	pp_lot_sentence(lot, text, sizeof(text));
	add_element(out, "li", "", text);
	pp_lot_drives_sentence(lot, text, sizeof(text));
	add_element(out, "li", "", text);
	pp_buf_addf(out, "</ul>\n<table><thead><tr><th class=\"l\">drive</th><th>campaigns</th>"
		"<th>cuts clean</th><th>lost</th><th>void</th><th>open</th><th>cuts that lose, at most</th>"
		"<th class=\"l\">%s</th></tr></thead><tbody>\n",
		lot->promise == PP_PROMISE_MEDIA ? "verdict" : "result");
	for (i = 0; i < lot->drive_count; i++) {
		const struct pp_lot_drive *d = &lot->drives[i];

		pp_report_share(share, sizeof(share), d->cuts.loss_bound_95);
		pp_buf_addf(out, "<tr>");
		add_element(out, "td", "l", d->serial);
		pp_buf_addf(out, "<td>%u</td><td>%u</td><td>%u</td><td>%u</td><td>%u</td><td>%s</td>",
			d->campaigns, d->cuts.clean, d->cuts.loss, d->cuts.voids, d->cuts.open, share);
		add_element(out, "td", class_of(d->verdict, lot->promise != PP_PROMISE_MEDIA),
			pp_arm_verdict_name(d->verdict));
		pp_buf_addf(out, "</tr>\n");
	}
	pp_buf_addf(out, "</tbody></table>\n");
}

static void add_lots(struct pp_buf *out, const struct pp_lots *lots)
{
	size_t i;

	if (!lots || lots->count == 0)
		return;
	pp_buf_addf(out, "<section>\n<h1>Drives of one kind, together</h1>\n<p>A verdict belongs to one "
		"drive. The sums below hold for others of the kind only as far as these are alike.</p>\n");
	for (i = 0; i < lots->count; i++)
		add_lot(out, &lots->list[i]);
	pp_buf_addf(out, "</section>\n");
}

static const char words[] =
	"<section>\n<h2>Words</h2>\n<dl>\n"
	"<dt>SAFE</dt><dd>Nothing that was acknowledged was lost in as many cuts as the criterion needs, on "
	"a rig that showed that it would have seen a loss.</dd>\n"
	"<dt>UNSAFE</dt><dd>Data that was acknowledged as safe was gone after a proven loss of power.</dd>\n"
	"<dt>INCONCLUSIVE</dt><dd>Something needed for a verdict was not measured; the reasons name "
	"it.</dd>\n"
	"<dt>LOSES, KEEPS</dt><dd>Of methods that do not promise to survive a cut: no verdict on the "
	"drive.</dd>\n"
	"<dt>N/A</dt><dd>The method does nothing on this kind of target, or is not there.</dd>\n"
	"<dt>clean, lost, void, open</dt><dd>Cuts after which nothing was missing; something was; that were "
	"not proven to have cut the drive's power; that could not be settled.</dd>\n"
	"<dt>not exposed</dt><dd>Nothing was missing, but nothing could have been: too little was written "
	"just before, or others flushed. Counts for nothing.</dd>\n"
	"<dt>at most</dt><dd>With 95 % confidence no larger share of such cuts loses data.</dd>\n"
	"</dl>\n</section>\n";

int pp_report_html(const struct pp_report_input *inputs, size_t count, const struct pp_lots *lots,
	struct pp_buf *out, struct pp_error *err)
{
	size_t i;
	int rc = 0;

	pp_buf_addf(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width\">\n<title>plugpull: ");
	for (i = 0; i < count; i++) {
		add_escaped(out, i ? ", " : "");
		add_escaped(out, inputs[i].source->name);
	}
	pp_buf_addf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", style);
	if (count > 1)
		add_lots(out, lots);
	for (i = 0; i < count && rc == 0; i++)
		rc = add_campaign(out, &inputs[i]);
	pp_buf_addf(out, "%s</body>\n</html>\n", words);
	return rc != 0 || out->failed ? pp_fail(err, PP_ERR_SYSTEM, "cannot make the report: out of "
		"memory") : 0;
}
