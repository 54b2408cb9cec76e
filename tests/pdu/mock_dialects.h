/* SPDX-License-Identifier: MIT
 *
 * How each device speaks, by its own documents. Included by mock_pdu.c only.
 * A dialect's parse() sets a reply for whatever it does not serve (404, its own error); a reply of
 * 200 set there needs no password, and 201 is a 200 that does.
 */

/* ---- Shelly Gen2: JSON-RPC over POST /rpc, GET /rpc/METHOD?..., open /shelly ------------------ */

static void shelly2_parse(struct mock *mock, const struct mock_request *request,
	struct mock_action *action, struct mock_reply *reply)
{
	const char *text = strcmp(request->method, "POST") == 0 ? request->body : request->path;

	if (strcmp(request->path, "/shelly") == 0) {
		mock_say(reply, 200, "{\"name\":null,\"id\":\"%s\",\"mac\":\"A8032ABE54DC\",\"slot\":1,"
			"\"model\":\"SPSW-104PE16EU\",\"gen\":2,\"fw_id\":\"x\",\"ver\":\"1.4.4\","
			"\"app\":\"Pro4PM\",\"auth_en\":%s,\"auth_domain\":\"%s\"}", mock->device_id,
			mock->password ? "true" : "false", mock->device_id);
		return;
	}
	if (strcmp(request->method, "POST") == 0 && strcmp(request->path, "/rpc") == 0 &&
	    mock_has(text, "\"Switch.Set\"")) {
		const char *params = strstr(text, "\"params\"");

		action->outlet = params ? mock_int(params, "\"id\"", -1) : -1;
		action->kind = params && mock_has(params, "\"on\":true") ? KIND_ON : KIND_OFF;
		action->timer_s = params ? mock_int(params, "\"toggle_after\"", 0) : 0;
		if (!params || (!mock_has(params, "\"on\":true") && !mock_has(params, "\"on\":false")))
			mock_say(reply, 500, "{\"id\":1,\"error\":{\"code\":-103,\"message\":\"Missing "
				"required argument 'on'!\"}}");
	} else if (strncmp(request->path, "/rpc/Switch.GetStatus?", 22) == 0) {
		action->outlet = mock_int(text, "id=", -1);
		action->kind = KIND_STATUS;
	} else if (strncmp(request->path, "/rpc/Switch.GetConfig?", 22) == 0) {
		action->outlet = mock_int(text, "id=", -1);
	} else {
		mock_say(reply, 404, "{\"code\":404,\"message\":\"No handler for it\"}");
	}
	if (reply->status == 0 && (action->outlet < 0 || action->outlet >= 4))
		mock_say(reply, 500, "{\"code\":-105,\"message\":\"Argument 'id', value %d not found!\"}",
			action->outlet);
}

static void shelly2_render(struct mock *mock, const struct mock_request *request,
	const struct mock_action *action, bool was_on, bool refuse, struct mock_reply *reply)
{
	int n = action->outlet;

	if (action->kind == KIND_STATUS && mock->fault == FAULT_OTHER_OUTLET)
		n = (n + 1) % 4;
	if (action->kind == KIND_STATUS && refuse)
		mock_say(reply, 200, "{\"code\":-104,\"message\":\"Deadline exceeded\"}");
	else if (action->kind == KIND_STATUS && mock->fault == FAULT_NO_STATE)
		mock_say(reply, 200, "{\"id\":%d,\"source\":\"HTTP_in\"}", n);
	else if (action->kind == KIND_STATUS)
		mock_say(reply, 200, "{\"id\":%d, \"source\":\"HTTP_in\", \"output\":%s, "
			"\"apower\":%.1f, \"voltage\":230.2, \"current\":0.2,"
			"\"temperature\":{\"tC\":41.2, \"tF\":106.2}}", n,
			mock->relay[n] ? "true" : "false", mock_watts(mock, n));
	else if (action->kind == KIND_OTHER)
		mock_say(reply, 200, "{\"id\":%d,\"name\":\"dut-%d\",\"in_mode\":\"follow\","
			"\"initial_state\":\"%s\",\"auto_on\":false,\"auto_off\":%s}", n, n,
			refuse || mock->misconfigured ? "off" : "restore_last",
			refuse || mock->misconfigured ? "true" : "false");
	else if (refuse)
		mock_say(reply, 200, "{\"id\":1,\"src\":\"%s\",\"error\":{\"code\":-109,"
			"\"message\":\"not now\"}}", mock->device_id);
	else
		mock_say(reply, 200, "{\"id\":1,\"src\":\"%s\",\"result\":{\"was_on\":%s}}",
			mock->device_id, was_on ? "true" : "false");
	(void)request;
}

/* ---- Shelly Gen1: GET /relay/N?turn=on|off, GET /relay/N, /meter/N, open /shelly -------------- */

static void shelly1_parse(struct mock *mock, const struct mock_request *request,
	struct mock_action *action, struct mock_reply *reply)
{
	action->outlet = mock_int(request->path, "/relay/", mock_int(request->path, "/meter/", -1));
	if (strcmp(request->path, "/shelly") == 0)
		mock_say(reply, 200, "{\"type\":\"SHSW-25\",\"mac\":\"%s\",\"auth\":true,\"fw\":\"1.11\"}",
			mock->device_id);
	else if (action->outlet < 0 || action->outlet > 3)
		mock_say(reply, 404, "Not Found");
	else if (mock_has(request->path, "turn=off"))
		action->kind = KIND_OFF;
	else if (mock_has(request->path, "turn=on"))
		action->kind = KIND_ON;
	else if (strncmp(request->path, "/relay/", 7) == 0)
		action->kind = KIND_STATUS;
	action->timer_s = mock_int(request->path, "&timer=", 0);
}

static void shelly1_render(struct mock *mock, const struct mock_request *request,
	const struct mock_action *action, bool was_on, bool refuse, struct mock_reply *reply)
{
	int n = action->outlet;

	if (refuse && action->kind != KIND_OTHER)
		mock_say(reply, 200, "Bad default state!"); /* plain text in a 200 */
	else if (strncmp(request->path, "/meter/", 7) == 0)
		mock_say(reply, 200, "{\"power\":%.2f,\"is_valid\":true,\"timestamp\":1,\"total\":7}",
			mock_watts(mock, n));
	else if (strncmp(request->path, "/settings", 9) == 0)
		mock_say(reply, 200, "{\"default_state\":\"%s\",\"auto_off\":%d}",
			mock->misconfigured ? "off" : "last", mock->misconfigured ? 60 : 0);
	else
		mock_say(reply, 200, "{\"ison\":%s,\"has_timer\":false,\"timer_remaining\":0,"
			"\"overpower\":false,\"source\":\"http\"}", mock->relay[n] ? "true" : "false");
	(void)was_on;
}

/* ---- Tasmota: GET /cm?cmnd=PowerN [On|Off] ------------------------------------------------------ */

static void tasmota_parse(struct mock *mock, const struct mock_request *request,
	struct mock_action *action, struct mock_reply *reply)
{
	const char *command = strstr(request->path, "cmnd=");

	(void)mock;
	if (strncmp(request->path, "/cm?", 4) != 0 || !command)
		mock_say(reply, 404, "File Not Found");
	else if (strncmp(command + 5, "Status%20", 9) == 0 || strncmp(command + 5, "PowerOnState", 12) == 0)
		action->outlet = 0;
	else if (strncmp(command + 5, "PulseTime", 9) == 0)
		action->outlet = mock_int(command, "PulseTime", 1) - 1;
	else if (strncmp(command + 5, "Backlog%20Power", 15) == 0 && mock_has(command, "%20Off%3BDelay%20")) {
		action->outlet = mock_int(command, "Power", 1) - 1;
		action->kind = KIND_OFF;
		action->timer_s = mock_int(command, "Delay%20", 0) / 10;
	}
	else if (strncmp(command + 5, "Power", 5) != 0 || (action->outlet =
	    mock_int(command, "Power", 0) - 1) < 0 || action->outlet >= 4)
		mock_say(reply, 201, "{\"Command\":\"Unknown\"}"); /* see serve_request */
	else if (mock_has(command, "%20Off"))
		action->kind = KIND_OFF;
	else if (mock_has(command, "%20On"))
		action->kind = KIND_ON;
	else
		action->kind = KIND_STATUS;
	if (reply->status == 201)
		action->outlet = 0;
}

static void tasmota_render(struct mock *mock, const struct mock_request *request,
	const struct mock_action *action, bool was_on, bool refuse, struct mock_reply *reply)
{
	int n = action->outlet;

	if (refuse) /* as old firmware refuses a password */
		mock_say(reply, 200, "{\"WARNING\":\"Need user=<username>&password=<password>\"}");
	else if (mock_has(request->path, "Status%2010") && mock->device_id[0] == 'o')
		mock_say(reply, 200, "{\"StatusSNS\":{\"Time\":\"x\",\"ENERGY\":{\"Power\":%.0f}}}",
			mock_watts(mock, 0));
	else if (mock_has(request->path, "Status%2010"))
		mock_say(reply, 200, "{\"StatusSNS\":{\"ENERGY\":{\"Power\":[%.0f,%.0f]}}}",
			mock_watts(mock, 0), mock_watts(mock, 1));
	else if (mock_has(request->path, "Status%205"))
		mock_say(reply, 200, "{\"StatusNET\":{\"Hostname\":\"t\",\"Mac\":\"%s\"}}",
			mock->device_id);
	else if (mock_has(request->path, "=Backlog%20"))
		mock_say(reply, 200, "{}");
	else if (mock_has(request->path, "PowerOnState"))
		mock_say(reply, 200, "{\"PowerOnState\":%d}", mock->misconfigured ? 0 : 3);
	else if (mock_has(request->path, "PulseTime"))
		mock_say(reply, 200, "{\"PulseTime%d\":{\"Set\":%d,\"Remaining\":0}}", n + 1,
			mock->misconfigured ? 111 : 0);
	else if (mock->device_id[0] == 'o') /* one relay: no number in the key */
		mock_say(reply, 200, "{\"POWER\":\"%s\"}", mock->relay[n] ? "ON" : "OFF");
	else /* other messages get merged in */
		mock_say(reply, 200, "{\"RESULT\":{\"Dimmer\":1},\"POWER%d\":\"%s\",\"POWER9\":\"OFF\"}",
			n + 1, mock->relay[n] ? "ON" : "OFF");
	(void)was_on;
}

/* ---- Digital Loggers REST: PUT .../N/transient_state/ value=..., GET .../physical_state/ -------- */

static void dli_parse(struct mock *mock, const struct mock_request *request,
	struct mock_action *action, struct mock_reply *reply)
{
	char csrf[64];

	if (strcmp(request->path, "/restapi/config/serial/") == 0) {
		mock_say(reply, 201, "\"%s\"", mock->device_id);
		return;
	}
	action->outlet = mock_int(request->path, "/restapi/relay/outlets/", -1);
	if (action->outlet < 0 || action->outlet >= MOCK_OUTLETS) {
		mock_say(reply, 404, "Not found");
	} else if (strcmp(request->method, "PUT") == 0) {
		if (!*mock_header(request, "X-CSRF", csrf, sizeof(csrf)))
			mock_say(reply, 400, "missing CSRF header");
		else if (strcmp(request->body, "value=false") != 0 &&
		    strcmp(request->body, "value=true") != 0)
			mock_say(reply, 400, "bad value");
		action->kind = mock_has(request->body, "true") ? KIND_ON : KIND_OFF;
	} else if (mock_has(request->path, "/physical_state/")) {
		action->kind = KIND_STATUS;
	}
}

static void dli_render(struct mock *mock, const struct mock_request *request,
	const struct mock_action *action, bool was_on, bool refuse, struct mock_reply *reply)
{
	int n = action->outlet;

	(void)was_on;
	if (refuse)
		mock_say(reply, 409, "locked");
	else if (action->kind == KIND_STATUS)
		mock_say(reply, 200, "%s", mock->relay[n] ? "true" : "false");
	else if (mock_has(request->path, "/name/"))
		mock_say(reply, 200, "\"dut-%d\"", n);
	else if (mock_has(request->path, "/locked/"))
		mock_say(reply, 200, mock->misconfigured ? "true" : "false");
	else if (mock_has(request->path, "/state/") && action->kind == KIND_OTHER)
		mock_say(reply, 200, mock->misconfigured ? "false" : "true");
	else
		mock_say(reply, 204, "%s", "");
}

/* ---- NETIO: GET and POST /netio.json; a refusal is a 200 with the old states ------------------- */

static void netio_parse(struct mock *mock, const struct mock_request *request,
	struct mock_action *action, struct mock_reply *reply)
{
	(void)mock;
	if (strcmp(request->path, "/netio.json") != 0) {
		mock_say(reply, 404, "not found");
	} else if (strcmp(request->method, "POST") == 0) {
		action->outlet = mock_int(request->body, "\"ID\"", 0) - 1;
		action->kind = mock_int(request->body, "\"Action\"", -1) == 1 ? KIND_ON : KIND_OFF;
		if (mock_int(request->body, "\"Action\"", -1) == 2)
			action->timer_s = mock_int(request->body, "\"Delay\"", 0) / 1000;
		if (action->outlet < 0 || action->outlet > 3 ||
		    mock_int(request->body, "\"Action\"", -1) < 0)
			mock_say(reply, 400, "syntax");
	} else {
		action->kind = KIND_STATUS;
		action->outlet = -1; /* of all */
	}
}

static void netio_render(struct mock *mock, const struct mock_request *request,
	const struct mock_action *action, bool was_on, bool refuse, struct mock_reply *reply)
{
	size_t used;

	(void)request;
	(void)action;
	(void)was_on;
	(void)refuse; /* the state did not change, and nothing says so */
	mock_say(reply, 200, "{\"Agent\":{\"Model\":\"PowerPDU 4C\",\"MAC\":\"%s\",\"NumOutputs\":4},"
		"\"Outputs\":[", mock->device_id);
	for (int n = 3; n >= 0; n--) { /* in an order of their own: find by ID */
		used = strlen(reply->body);
		snprintf(reply->body + used, sizeof(reply->body) - used,
			"{\"ID\":%d,\"Name\":\"dut-%d\",\"State\":%d,\"Action\":6,\"Delay\":2000,"
			"\"Current\":100,\"Load\":%.0f}%s", n + 1, n, mock->relay[n],
			mock_watts(mock, n), n ? "," : "]}");
	}
}

/* ---- Gude: GET /statusjsn.js?components=1[&cmd=1&p=N&s=0|1] ------------------------------------ */

static void gude_parse(struct mock *mock, const struct mock_request *request,
	struct mock_action *action, struct mock_reply *reply)
{
	(void)mock;
	action->kind = KIND_STATUS;
	action->outlet = -1; /* of all */
	if (strncmp(request->path, "/statusjsn.js?", 14) != 0) {
		mock_say(reply, 404, "not found");
	} else if (mock_has(request->path, "cmd=5") && mock_has(request->path, "&a1=0&a2=1")) {
		action->outlet = mock_int(request->path, "p=", 0) - 1;
		action->kind = KIND_OFF;
		action->timer_s = mock_int(request->path, "&s=", 0);
		if (action->outlet < 0 || action->outlet > 3)
			mock_say(reply, 400, "no such port");
	} else if (mock_has(request->path, "cmd=1")) {
		action->outlet = mock_int(request->path, "p=", 0) - 1;
		action->kind = mock_int(request->path, "s=", -1) ? KIND_ON : KIND_OFF;
		if (mock_has(request->path, "&s=0"))
			action->kind = KIND_OFF;
		if (action->outlet < 0 || action->outlet > 3)
			mock_say(reply, 400, "no such port");
	}
}

static void gude_render(struct mock *mock, const struct mock_request *request,
	const struct mock_action *action, bool was_on, bool refuse, struct mock_reply *reply)
{
	(void)request;
	(void)action;
	(void)was_on;
	if (refuse) {
		mock_say(reply, 200, "<HTML>Device is blocked by another user with IP 10.0.0.9</HTML>");
		return;
	}
	mock_say(reply, 200, "{\"outputs\":[");
	for (int n = 0; n < 4; n++) {
		size_t used = strlen(reply->body);

		snprintf(reply->body + used, sizeof(reply->body) - used,
			"{\"name\":\"dut-%d\",\"state\":%d,\"sw_cnt\":3,\"type\":1}%s", n,
			mock->relay[n], n < 3 ? "," : "]}");
	}
}

/* ---- Raritan JSON-RPC: POST /model/pdu/0/outlet/N; refusals are _ret_ in a 200 ----------------- */

static void raritan_parse(struct mock *mock, const struct mock_request *request,
	struct mock_action *action, struct mock_reply *reply)
{
	(void)mock;
	if (strcmp(request->method, "POST") != 0) {
		mock_say(reply, 405, "POST only");
	} else if (strcmp(request->path, "/model/pdu/0") == 0) {
		action->outlet = 0;
	} else if ((action->outlet = mock_int(request->path, "/model/pdu/0/outlet/", -1)) < 0 ||
	    action->outlet >= MOCK_OUTLETS) {
		mock_say(reply, 404, "no such resource");
	} else if (mock_has(request->body, "\"setPowerState\"")) {
		action->kind = mock_int(request->body, "\"pstate\"", -1) == 1 ? KIND_ON : KIND_OFF;
	} else if (mock_has(request->body, "\"getState\"")) {
		action->kind = KIND_STATUS;
	}
}

static void raritan_render(struct mock *mock, const struct mock_request *request,
	const struct mock_action *action, bool was_on, bool refuse, struct mock_reply *reply)
{
	int n = action->outlet;
	bool pending = mock->countdown[n] && mock->fault == FAULT_PENDING;

	(void)was_on;
	if (action->kind == KIND_STATUS && refuse)
		mock_say(reply, 200, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32601,\"message\":\"x\"},"
			"\"id\":1}");
	else if (action->kind == KIND_STATUS) /* power is 0 at once while it still switches */
		mock_say(reply, 200, "{\"jsonrpc\":\"2.0\",\"result\":{\"_ret_\":{\"available\":true,"
			"\"powerState\":%d,\"switchOnInProgress\":%s,\"cycleInProgress\":%s,"
			"\"isLoadShed\":false,\"isSuspended\":false}},\"id\":1}",
			pending ? 0 : mock->relay[n], "false", pending ? "true" : "false");
	else if (mock_has(request->body, "getMetaData"))
		mock_say(reply, 200, "{\"jsonrpc\":\"2.0\",\"result\":{\"_ret_\":{\"isSwitchable\":%s,"
			"\"nameplate\":{\"serialNumber\":\"%s\",\"model\":\"PX3\"}}},\"id\":1}",
			mock->misconfigured ? "false" : "true", mock->device_id);
	else if (action->kind == KIND_OTHER)
		mock_say(reply, 200, "{\"jsonrpc\":\"2.0\",\"result\":{\"_ret_\":{\"name\":\"dut-%d\"}},"
			"\"id\":1}", n);
	else
		mock_say(reply, 200, "{\"jsonrpc\":\"2.0\",\"result\":{\"_ret_\":%d},\"id\":1}",
			refuse ? 2 : 0);
}

/* ---- Server Technology JAWS ---------------------------------------------------------------------- */

static void jaws_parse(struct mock *mock, const struct mock_request *request,
	struct mock_action *action, struct mock_reply *reply)
{
	(void)mock;
	action->outlet = mock_int(request->path, "/outlets/AA", 0) - 1;
	if (action->outlet < 0 || action->outlet > 3)
		mock_say(reply, 404, "no such outlet");
	else if (strcmp(request->method, "PATCH") == 0)
		action->kind = mock_has(request->body, "{\"control_action\":\"on\"}") ? KIND_ON : KIND_OFF;
	else if (strncmp(request->path, "/jaws/monitor/", 14) == 0)
		action->kind = KIND_STATUS;
}

static void jaws_render(struct mock *mock, const struct mock_request *request,
	const struct mock_action *action, bool was_on, bool refuse, struct mock_reply *reply)
{
	int n = action->outlet;

	(void)request;
	(void)was_on;
	if (refuse)
		mock_say(reply, 405, "locked");
	else if (action->kind == KIND_STATUS)
		mock_say(reply, 200, "{\"id\":\"AA%d\",\"name\":\"dut-%d\",\"state\":\"%s\","
			"\"active_power\":%.0f}", n + 1, n, mock->countdown[n] &&
			mock->fault == FAULT_PENDING ? "Off Wait" : mock->relay[n] ? "On" : "Off",
			mock_watts(mock, n));
	else
		mock_say(reply, 204, "%s", "");
}

/* ---- Redfish: outlet A1.. of a rack PDU, and a system's BMC --------------------------------------- */

static void redfish_parse(struct mock *mock, const struct mock_request *request,
	struct mock_action *action, struct mock_reply *reply)
{
	bool set = strcmp(request->method, "POST") == 0;

	if (strcmp(request->path, "/redfish/v1/PowerEquipment/RackPDUs/1") == 0 ||
	    strcmp(request->path, "/redfish/v1/PowerEquipment/FloorPDUs/7") == 0 ||
	    strcmp(request->path, "/redfish/v1") == 0) {
		mock_say(reply, 201, "{\"SerialNumber\":\"%s\",\"UUID\":\"%s\",\"Model\":\"m\"}",
			mock->device_id, mock->device_id);
		return;
	}
	action->outlet = mock_int(request->path, "/Outlets/A", mock_int(request->path, "/Systems/", 0)) - 1;
	if (action->outlet < 0 || action->outlet > 3)
		mock_say(reply, 404, "{\"error\":{\"code\":\"Base.1.0.ResourceMissing\"}}");
	else if (set && !mock_has(request->path, "/Actions/Oem-odd/"))
		mock_say(reply, 404, "{\"error\":{\"code\":\"no such action\"}}");
	else if (set)
		action->kind = mock_has(request->body, "On\"") ? KIND_ON : KIND_OFF;
	else
		action->kind = KIND_STATUS;
}

static void redfish_render(struct mock *mock, const struct mock_request *request,
	const struct mock_action *action, bool was_on, bool refuse, struct mock_reply *reply)
{
	int n = action->outlet;
	bool pending = mock->countdown[n] && mock->fault == FAULT_PENDING;
	bool system = mock_has(request->path, "/Systems/");
	const char *base = system ? "/redfish/v1/Systems/" : "/redfish/v1/PowerEquipment/RackPDUs/1/"
		"Outlets/A";

	if (refuse && action->kind != KIND_STATUS)
		mock_say(reply, 202, "{\"error\":{\"code\":\"Base.1.0.ActionNotSupported\"}}");
	else if (action->kind != KIND_STATUS && system && was_on == (action->kind == KIND_ON))
		mock_say(reply, 409, "{\"error\":{\"code\":\"already so\"}}");
	else if (action->kind != KIND_STATUS)
		mock_say(reply, 204, "%s", "");
	else
		mock_say(reply, 200, "{\"Id\":\"A%d\",\"UserLabel\":\"dut-%d\",\"SerialNumber\":\"s\","
			"\"PowerState\":\"%s\",\"PowerOffDelaySeconds\":%d,\"PowerControlLocked\":%s,"
			"\"PowerRestorePolicy\":\"%s\",\"PowerWatts\":{\"Reading\":%.1f},"
			"\"Actions\":{\"#Outlet.PowerControl\":{\"target\":\"%s%d/Actions/Oem-odd/x\"},"
			"\"#ComputerSystem.Reset\":{\"target\":\"%s%d/Actions/Oem-odd/x\","
			"\"ResetType@Redfish.AllowableValues\":[\"On\",%s\"GracefulShutdown\"]}}}", n + 1, n,
			pending ? "PoweringOff" : mock->relay[n] ? "On" : "Off",
			mock->misconfigured ? 5 : 0, mock->misconfigured ? "true" : "false",
			mock->misconfigured ? "AlwaysOff" : "LastState", mock_watts(mock, n),
			base, n + 1, base, n + 1, mock->misconfigured ? "" : "\"ForceOff\",");
}

/* ---- Home Assistant: 200 and [] whatever happens --------------------------------------------------- */

static void ha_parse(struct mock *mock, const struct mock_request *request,
	struct mock_action *action, struct mock_reply *reply)
{
	bool set = strcmp(request->method, "POST") == 0;
	const char *text = set ? request->body : request->path;

	action->outlet = mock_int(text, "switch.dut_", 0) - 1;
	if (action->outlet < 0 || action->outlet > 3)
		mock_say(reply, set ? 200 : 404, set ? "[]" : "{\"message\":\"Entity not found.\"}");
	else if (strcmp(request->path, "/api/services/switch/turn_off") == 0)
		action->kind = KIND_OFF;
	else if (strcmp(request->path, "/api/services/switch/turn_on") == 0)
		action->kind = KIND_ON;
	else
		action->kind = KIND_STATUS;
	(void)mock;
}

static void ha_render(struct mock *mock, const struct mock_request *request,
	const struct mock_action *action, bool was_on, bool refuse, struct mock_reply *reply)
{
	int n = action->outlet;

	(void)request;
	(void)was_on;
	if (action->kind == KIND_STATUS)
		mock_say(reply, 200, "{\"entity_id\":\"switch.dut_%d\",\"state\":\"%s\",\"attributes\":{"
			"\"friendly_name\":\"dut-%d\"%s}}", n + 1,
			mock->countdown[n] && mock->fault == FAULT_PENDING ? "unavailable" :
			mock->relay[n] ? "on" : "off", n, refuse ? ",\"assumed_state\":true" : "");
	else
		mock_say(reply, 200, "[]");
}

/* ---- ESPHome, myStrom, and a plain PUT/GET ---------------------------------------------------------- */

static void small_parse(struct mock *mock, const struct mock_request *request,
	struct mock_action *action, struct mock_reply *reply)
{
	const char *path = request->path;
	bool esphome = strncmp(path, "/switch/dut/", 12) == 0;

	action->outlet = 0;
	if ((esphome && strcmp(path + 12, "turn_off") == 0) || strcmp(path, "/relay?state=0") == 0)
		action->kind = KIND_OFF;
	else if ((esphome && strcmp(path + 12, "turn_on") == 0) || strcmp(path, "/relay?state=1") == 0)
		action->kind = KIND_ON;
	else if (strcmp(path, "/api/v1/info") == 0)
		mock_say(reply, 201, "{\"mac\":\"%s\",\"type\":107}", mock->device_id);
	else if (strcmp(path, "/outlets/1") == 0 && strcmp(request->method, "PUT") == 0)
		action->kind = strcmp(request->body, "1") == 0 ? KIND_ON : KIND_OFF;
	else if (strcmp(path, "/outlets/1") == 0 || strcmp(path, "/switch/dut") == 0 ||
	    strcmp(path, "/report") == 0)
		action->kind = KIND_STATUS;
	else
		mock_say(reply, 404, "not found");
	if (esphome && strcmp(request->method, "POST") != 0)
		mock_say(reply, 405, "POST only");
}

static void small_render(struct mock *mock, const struct mock_request *request,
	const struct mock_action *action, bool was_on, bool refuse, struct mock_reply *reply)
{
	bool on = mock->relay[0];

	(void)was_on;
	if (refuse && action->kind != KIND_STATUS)
		mock_say(reply, 403, "no");
	else if (strncmp(request->path, "/switch/", 8) == 0)
		mock_say(reply, 200, action->kind == KIND_STATUS ? "{\"id\":\"switch-dut\","
			"\"value\":%s,\"state\":\"%s\"}" : "%.0s%.0s", on ? "true" : "false",
			on ? "ON" : "OFF");
	else if (strcmp(request->path, "/report") == 0)
		mock_say(reply, 200, "{\"power\":%.2f,\"relay\":%s}", mock_watts(mock, 0),
			on ? "true" : "false");
	else
		mock_say(reply, 200, "%s", action->kind != KIND_STATUS ? "" : on ? "1\n" : "0\n");
}

/* ---- PiKVM, Devantech ETH008, tinycontrol tcPDU ----------------------------------------------------- */

static void other_parse(struct mock *mock, const struct mock_request *request,
	struct mock_action *action, struct mock_reply *reply)
{
	const char *path = request->path;

	(void)mock;
	action->outlet = mock_int(path, "?DOI", mock_int(path, "?DOA", mock_int(path, "?out", 1))) - 1;
	if (strncmp(path, "/api/atx/power?", 15) == 0 && strcmp(request->method, "POST") == 0)
		action->kind = mock_has(path, "action=off_hard") ? KIND_OFF : KIND_ON;
	else if (strncmp(path, "/io.cgi?DO", 10) == 0 && action->outlet >= 0)
		action->kind = path[10] == 'A' ? KIND_ON : KIND_OFF;
	else if (strncmp(path, "/api/v1/save/?out", 17) == 0 && action->outlet >= 0)
		action->kind = mock_has(path, "=1") ? KIND_ON : KIND_OFF;
	else if (strcmp(path, "/api/atx") == 0)
		action->kind = KIND_STATUS;
	else if (strcmp(path, "/io.cgi?relay") == 0 || strcmp(path, "/api/v1/read/status/?outValues") == 0) {
		action->kind = KIND_STATUS;
		action->outlet = -1; /* of all */
	} else {
		mock_say(reply, 404, "not found");
	}
}

static void other_render(struct mock *mock, const struct mock_request *request,
	const struct mock_action *action, bool was_on, bool refuse, struct mock_reply *reply)
{
	bool *on = mock->relay;

	(void)was_on;
	if (refuse && action->kind != KIND_STATUS)
		mock_say(reply, 403, "{\"ok\":false}");
	else if (strcmp(request->path, "/api/atx") == 0)
		mock_say(reply, 200, "{\"ok\":true,\"result\":{\"busy\":%s,\"enabled\":true,"
			"\"leds\":{\"hdd\":false,\"power\":%s}}}", mock->countdown[0] &&
			mock->fault == FAULT_PENDING ? "true" : "false", on[0] ? "true" : "false");
	else if (strncmp(request->path, "/api/atx", 8) == 0)
		mock_say(reply, 200, "{\"ok\":true,\"result\":{}}");
	else if (strncmp(request->path, "/io.cgi", 7) == 0)
		mock_say(reply, 200, "Success! %d%d%d%d%d%d%d%d", on[0], on[1], on[2], on[3], on[4], on[5],
			on[6], on[7]);
	else
		mock_say(reply, 200, "{\"out1\":%d,\"out2\":%d,\"out3\":%d,\"out4\":%d}", on[0], on[1],
			on[2], on[3]);
}

static const struct mock_dialect mock_dialects[] = {
	{ "shelly-gen2", shelly2_parse, shelly2_render, MOCK_AUTH_SHA256 },
	{ "shelly-gen1", shelly1_parse, shelly1_render, MOCK_AUTH_BASIC },
	{ "tasmota", tasmota_parse, tasmota_render, MOCK_AUTH_BASIC },
	{ "dli-rest", dli_parse, dli_render, MOCK_AUTH_MD5 },
	{ "netio-json", netio_parse, netio_render, MOCK_AUTH_BASIC },
	{ "gude", gude_parse, gude_render, MOCK_AUTH_BASIC },
	{ "raritan-jsonrpc", raritan_parse, raritan_render, MOCK_AUTH_BASIC },
	{ "servertech-jaws", jaws_parse, jaws_render, MOCK_AUTH_BASIC },
	{ "redfish-outlet", redfish_parse, redfish_render, MOCK_AUTH_BASIC },
	{ "redfish-system", redfish_parse, redfish_render, MOCK_AUTH_BASIC },
	{ "home-assistant", ha_parse, ha_render, MOCK_AUTH_BEARER },
	{ "esphome", small_parse, small_render, MOCK_AUTH_MD5 },
	{ "mystrom", small_parse, small_render, MOCK_AUTH_NONE },
	{ "pikvm", other_parse, other_render, MOCK_AUTH_BASIC },
	{ "devantech-eth008", other_parse, other_render, MOCK_AUTH_BASIC },
	{ "tinycontrol", other_parse, other_render, MOCK_AUTH_BASIC },
	{ "generic-rest", small_parse, small_render, MOCK_AUTH_NONE },
};
