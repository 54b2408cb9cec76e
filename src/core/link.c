/* SPDX-License-Identifier: MIT */
#include "link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "text.h"

static const struct {
	double gt_per_s;
	const char *generation;
	double lane_mb_per_s;
} pcie[] = {
	{ 2.5, "1.0", 250 }, { 5.0, "2.0", 500 }, { 8.0, "3.0", 8000 * 128.0 / 130 / 8 },
	{ 16.0, "4.0", 16000 * 128.0 / 130 / 8 }, { 32.0, "5.0", 32000 * 128.0 / 130 / 8 },
	{ 64.0, "6.0", 64000 * 128.0 / 130 / 8 },
};
#define GENERATIONS (sizeof(pcie) / sizeof(pcie[0]))

static bool pcie_link(size_t generation, unsigned lanes, struct pp_link *link)
{
	if (generation >= GENERATIONS || lanes < 1 || lanes > 32)
		return false;
	pp_text_format(link->text, sizeof(link->text), "PCIe %s x%u", pcie[generation].generation,
		lanes);
	link->bytes_per_s = pcie[generation].lane_mb_per_s * lanes * 1e6;
	return true;
}

static bool pcie_by_rate(double gt_per_s, unsigned lanes, struct pp_link *link)
{
	size_t i;

	for (i = 0; i < GENERATIONS; i++)
		if (pcie[i].gt_per_s == gt_per_s)
			return pcie_link(i, lanes, link);
	return false;
}

static bool sata_link(double gbps, struct pp_link *link)
{
	if (gbps != 1.5 && gbps != 3 && gbps != 6)
		return false;
	pp_text_format(link->text, sizeof(link->text), "SATA %.1f Gbps", gbps);
	link->bytes_per_s = gbps * 1e8;
	return true;
}

static bool usb_link(double mbps, struct pp_link *link)
{
	if (mbps < 1 || mbps > 1e6)
		return false;
	pp_text_format(link->text, sizeof(link->text), "USB %.0f Mbps", mbps);
	link->bytes_per_s = mbps * 1e6 * (mbps < 1000 ? 1.0 / 8 : mbps <= 5000 ? 1.0 / 10
		: 128.0 / 132 / 8);
	return true;
}

/* What follows a number must be nothing, or one of the words. */
static bool ends(const char *rest, const char *const *words)
{
	while (*rest == ' ')
		rest++;
	for (; *words; words++)
		if (strcasecmp(rest, *words) == 0)
			return true;
	return *rest == '\0';
}

static bool rate_link(const char *text, struct pp_link *link)
{
	static const struct { const char *unit; double factor; } units[] = {
		{ "MB/s", 1e6 }, { "GB/s", 1e9 }, { "MiB/s", 1048576 }, { "GiB/s", 1073741824 },
	};
	char *rest;
	double value = strtod(text, &rest);
	size_t i;

	while (*rest == ' ')
		rest++;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(rest, units[i].unit) == 0 && value > 0) {
			pp_text_copy(link->text, sizeof(link->text), text);
			link->bytes_per_s = value * units[i].factor;
			return true;
		}
	return false;
}

bool pp_link_parse(const char *text, struct pp_link *link)
{
	static const char *const gbps[] = { "Gbps", "Gb/s", NULL }, *const mbps[] = { "Mbps", "Mb/s", NULL };
	unsigned generation, lanes;
	double value;
	char *rest;
	int end = -1;

	if (sscanf(text, "PCIe %u.0 x%u%n", &generation, &lanes, &end) == 2 && end > 0 && !text[end])
		return pcie_link(generation - 1U, lanes, link);
	if (sscanf(text, "PCIe gen%u x%u%n", &generation, &lanes, &end) == 2 && end > 0 && !text[end])
		return pcie_link(generation - 1U, lanes, link);
	if (sscanf(text, "%lf GT/s x%u%n", &value, &lanes, &end) == 2 && end > 0 && !text[end])
		return pcie_by_rate(value, lanes, link);
	if (strncmp(text, "SATA ", 5) == 0) {
		value = strtod(text + 5, &rest);
		if (rest == text + 5 || !ends(rest, gbps))
			return false;
		/* "SATA 3" is the third generation, "SATA 3.0 Gbps" the second's rate. */
		if (*rest == '\0' && strchr(text + 5, '.') == NULL && value >= 1 && value <= 3)
			value = value == 1 ? 1.5 : value == 2 ? 3 : 6;
		return sata_link(value, link);
	}
	if (strncmp(text, "USB ", 4) == 0) {
		value = strtod(text + 4, &rest);
		return rest != text + 4 && *rest && ends(rest, mbps) && usb_link(value, link);
	}
	return rate_link(text, link);
}
