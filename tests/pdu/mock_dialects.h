/* SPDX-License-Identifier: MIT
 *
 * How each device speaks, by its own documents. Included by mock_pdu.c only.
 * A dialect's parse() sets a reply for whatever it does not serve (404, its own error); a reply of
 * 200 set there needs no password.
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
			refuse ? "off" : "restore_last", refuse ? "true" : "false");
	else if (refuse)
		mock_say(reply, 200, "{\"id\":1,\"src\":\"%s\",\"error\":{\"code\":-109,"
			"\"message\":\"not now\"}}", mock->device_id);
	else
		mock_say(reply, 200, "{\"id\":1,\"src\":\"%s\",\"result\":{\"was_on\":%s}}",
			mock->device_id, was_on ? "true" : "false");
	(void)request;
}

static const struct mock_dialect mock_dialects[] = {
	{ "shelly-gen2", shelly2_parse, shelly2_render, MOCK_AUTH_SHA256 },
};
