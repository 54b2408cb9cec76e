/* SPDX-License-Identifier: MIT
 *
 * The slowest link between a disk and this machine: no rate of data can be higher. Read below a
 * sysroot: current_link_speed and current_link_width of every PCI device above the disk
 * (Documentation/ABI/testing/sysfs-bus-pci), sata_spd of its ATA link (testing/sysfs-ata), speed of
 * its USB device (stable/sysfs-bus-usb). Rates are those after line coding, before protocol: PCIe
 * 1 and 2 and SATA 8b/10b, PCIe from 3 on 128b/130b, USB as it names itself divided by 10 (8b/10b)
 * up to 5 Gb/s, by 8 * 132/128 above.
 */
#ifndef PP_CORE_LINK_H
#define PP_CORE_LINK_H

#include <stdbool.h>

#include "drive.h"

struct pp_link {
	char text[64];        /* "PCIe 2.0 x4", "SATA 6.0 Gbps", "USB 5000 Mbps" */
	double bytes_per_s;
};

/* disk: the kernel's name. False where nothing is known of a link. */
bool pp_link_of_disk(const struct pp_sysroot *sys, const char *disk, struct pp_link *link);

/*
 * What a person or sysfs says: "PCIe 2.0 x4", "PCIe gen3 x2", "5.0 GT/s x4", "SATA 6.0 Gbps",
 * "SATA 3", "USB 5000 Mbps", "2000 MB/s". False for anything else.
 */
bool pp_link_parse(const char *text, struct pp_link *link);

#endif
