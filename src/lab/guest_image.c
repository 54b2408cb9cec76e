/* SPDX-License-Identifier: MIT */
#include "guest_image.h"

#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"
#include "core/file.h"
#include "cpio.h"
#include "guest.h"

#define FILE_BYTES_MAX (64 << 20)

/* ---- kernel ----------------------------------------------------------------------------- */

static int use_folder(struct pp_guest_kernel *kernel, const char *dir, struct pp_error *err)
{
	char path[4096 + 16];
	struct dirent *entry;
	DIR *modules;

	snprintf(kernel->root, sizeof(kernel->root), "%s", dir);
	if (snprintf(kernel->vmlinuz, sizeof(kernel->vmlinuz), "%s/vmlinuz", dir)
	    >= (int)sizeof(kernel->vmlinuz))
		return pp_fail_os(err, ENAMETOOLONG, "cannot use '%s'", dir);
	if (access(kernel->vmlinuz, R_OK))
		return pp_fail_os(err, errno, "cannot read '%s'", kernel->vmlinuz);
	snprintf(path, sizeof(path), "%s/lib/modules", dir);
	modules = opendir(path);
	if (!modules)
		return pp_fail_os(err, errno, "cannot read '%s'", path);
	kernel->release[0] = '\0';
	while ((entry = readdir(modules)))
		if (entry->d_name[0] != '.')
			snprintf(kernel->release, sizeof(kernel->release), "%.127s", entry->d_name);
	closedir(modules);
	if (!kernel->release[0])
		return pp_fail(err, PP_ERR_USAGE, "'%s' has no kernel's modules", path);
	return 0;
}

/* Under sudo the cache is the user's who called, and what we put there is theirs. */
static const struct passwd *caller(void)
{
	const char *user = getenv("SUDO_USER");

	return user && !geteuid() ? getpwnam(user) : NULL;
}

static int cache_folder(char *out, size_t bytes, struct pp_error *err)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	const struct passwd *user = caller();
	int n;

	if (user)
		n = snprintf(out, bytes, "%s/.cache/plugpull", user->pw_dir);
	else if (xdg && xdg[0] == '/')
		n = snprintf(out, bytes, "%s/plugpull", xdg);
	else
		n = snprintf(out, bytes, "%s/.cache/plugpull", home ? home : "/root");
	if (n >= (int)bytes)
		return pp_fail_os(err, ENAMETOOLONG, "cannot name the cache folder");
	return 0;
}

/* $1 cache folder, $2 its owner's uid:gid or nothing. Prints the name of what it made. */
static const char fetch_script[] =
	"abi=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null |\n"
	"	sed -n 's/^ *Depends: linux-image-\\([^ ]*\\)$/\\1/p' | head -n 1)\n"
	"[ -n \"$abi\" ] || { echo 'apt-cache knows no linux-image-cloud-amd64'; exit 1; }\n"
	"top=\"$1\"; while [ ! -e \"$(dirname \"$top\")\" ]; do top=$(dirname \"$top\"); done\n"
	"mkdir -p \"$1\"; new=$(mktemp -d \"$1/new.XXXXXX\")\n"
	"trap 'rm -rf \"$new\"' EXIT; trap 'exit 1' INT TERM HUP\n"
	"cd \"$new\"\n"
	"apt-get -q -o APT::Sandbox::User=root download \"linux-image-$abi\" >log 2>&1 ||\n"
	"	{ tail -n 1 log; exit 1; }\n"
	"dpkg-deb -x linux-image-*.deb x\n"
	"mkdir -p k/lib\n"
	"mv x/boot/vmlinuz-* k/vmlinuz\n"
	"if [ -d x/usr/lib/modules ]; then mv x/usr/lib/modules k/lib/; else mv x/lib/modules k/lib/; fi\n"
	"depmod -b k \"$abi\"\n"
	"[ -e \"$1/kernel-$abi\" ] || mv k \"$1/kernel-$abi\"\n"
	"[ -z \"$2\" ] || chown -R \"$2\" \"$top\"\n";

static int fetch(const char *cache, struct pp_error *err)
{
	const struct passwd *user = caller();
	char owner[32] = "";
	const char *argv[] = { "sh", "-ec", fetch_script, "fetch", cache, owner, NULL };

	if (user)
		snprintf(owner, sizeof(owner), "%u:%u", (unsigned)user->pw_uid, (unsigned)user->pw_gid);
	if (pp_child_run(argv, NULL, err))
		return pp_fail_within(err, "cannot download a kernel for the virtual machine "
			"(offline? give a folder with vmlinuz and lib/modules instead)");
	return 0;
}

/* The one whose name sorts last: good enough among the few that a cache ever holds. */
static bool find_cached(const char *cache, char *out, size_t bytes)
{
	struct dirent *entry;
	DIR *dir = opendir(cache);

	out[0] = '\0';
	while (dir && (entry = readdir(dir))) {
		char path[4096 + 300];

		snprintf(path, sizeof(path), "%s/%s", cache, entry->d_name);
		if (!strncmp(entry->d_name, "kernel-", 7) && strcmp(path, out) > 0)
			snprintf(out, bytes, "%.4000s", path);
	}
	if (dir)
		closedir(dir);
	return out[0];
}

int pp_guest_kernel_find(struct pp_guest_kernel *kernel, const char *dir,
	void (*talk)(const char *text), struct pp_error *err)
{
	char cache[4096], found[4096];

	if (dir)
		return use_folder(kernel, dir, err);
	if (cache_folder(cache, sizeof(cache), err))
		return -1;
	if (!find_cached(cache, found, sizeof(found))) {
		if (talk)
			talk("downloading a kernel for the virtual machine (27 MB, once)");
		if (fetch(cache, err))
			return -1;
		if (!find_cached(cache, found, sizeof(found)))
			return pp_fail(err, PP_ERR_SYSTEM, "no kernel in '%s' after the download", cache);
	}
	return use_folder(kernel, found, err);
}

/* ---- initramfs -------------------------------------------------------------------------- */

/* Names that the archive has, so that a library needed by three programs is stored once. */
struct image {
	struct pp_buf *archive;
	struct pp_buf names; /* "\nname\n" */
};

static bool have(struct image *image, const char *name)
{
	char key[4096 + 2];

	snprintf(key, sizeof(key), "\n%s\n", name);
	if (image->names.data && strstr(image->names.data, key))
		return true;
	pp_buf_addf(&image->names, "\n%s\n", name);
	return false;
}

static void add_parents(struct image *image, const char *name)
{
	char part[4096];

	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - name), name);
		if (!have(image, part))
			pp_cpio_dir(image->archive, part);
	}
}

static int add_file(struct image *image, const char *name, const char *from, struct pp_error *err)
{
	struct pp_buf data;
	int rc;

	if (have(image, name))
		return 0;
	add_parents(image, name);
	pp_buf_init(&data, FILE_BYTES_MAX);
	rc = pp_file_read(from, &data, err);
	if (!rc)
		pp_cpio_file(image->archive, name, 0755, data.data, data.bytes);
	pp_buf_release(&data);
	return rc;
}

static void add_text(struct image *image, const char *name, const struct pp_buf *text)
{
	add_parents(image, name);
	pp_cpio_file(image->archive, name, 0644, text->data, text->bytes);
}

static void add_link(struct image *image, const char *name, const char *to)
{
	if (have(image, name))
		return;
	add_parents(image, name);
	pp_cpio_link(image->archive, name, to);
}

static bool find_program(const char *name, char *out, size_t bytes)
{
	static const char *const folders[] = { "/usr/sbin", "/usr/bin", "/sbin", "/bin" };

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(out, bytes, "%s/%s", folders[i], name);
		if (!access(out, X_OK))
			return true;
	}
	return false;
}

/* A dynamic program with its libraries, at the places where its loader looks for them. */
static int add_program(struct image *image, const char *name, struct pp_error *err)
{
	char path[4096], to[4096 + 8];
	const char *argv[] = { "ldd", path, NULL };
	struct pp_buf out;
	char *save = NULL;
	int rc;

	if (!find_program(name, path, sizeof(path)))
		return 0;
	snprintf(to, sizeof(to), "sbin/%s", name);
	if (add_file(image, to, path, err))
		return -1;
	pp_buf_init(&out, 1 << 16);
	rc = pp_child_run(argv, &out, err);
	for (char *line = rc ? NULL : strtok_r(out.data, "\n", &save); line && !rc;
	     line = strtok_r(NULL, "\n", &save)) {
		char *from = strchr(line, '/'), *end = from ? strchr(from, ' ') : NULL;

		if (!end)
			continue;
		*end = '\0';
		rc = add_file(image, from + 1, from, err);
	}
	pp_buf_release(&out);
	return rc;
}

static int add_busybox(struct image *image, struct pp_error *err)
{
	char path[4096], name[128];
	const char *argv[] = { path, "--list", NULL };
	struct pp_buf list;
	char *save = NULL;
	int rc;

	if (!find_program("busybox", path, sizeof(path)))
		return pp_fail(err, PP_ERR_SYSTEM, "busybox not found (install busybox-static)");
	if (add_file(image, "bin/busybox", path, err))
		return -1;
	pp_buf_init(&list, 1 << 16);
	rc = pp_child_run(argv, &list, err);
	for (char *line = rc || !list.data ? NULL : strtok_r(list.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		snprintf(name, sizeof(name), "bin/%s", line);
		add_link(image, name, "busybox");
	}
	add_link(image, "sbin/modprobe", "../bin/busybox");
	pp_buf_release(&list);
	return rc;
}

/* ---- modules ---------------------------------------------------------------------------- */

/* The line of modules.dep for a module by its name: "path: needed-by-path ...". */
static const char *dep_line(const char *deps, const char *module)
{
	char key[192];
	const char *at;

	snprintf(key, sizeof(key), "/%s.ko:", module);
	at = strstr(deps, key);
	while (at && at > deps && at[-1] != '\n')
		at--;
	return at;
}

static int add_module_path(struct image *image, const struct pp_guest_kernel *kernel,
	const char *path, struct pp_buf *load, struct pp_error *err)
{
	char to[4096], from[8192];

	snprintf(to, sizeof(to), "lib/modules/%s/%s", kernel->release, path);
	snprintf(from, sizeof(from), "%s/%s", kernel->root, to);
	if (load) {
		char line[4096 + 2];

		snprintf(line, sizeof(line), "/%s\n", to);
		if (!load->data || !strstr(load->data, line))
			pp_buf_addf(load, "%s", line);
	}
	return add_file(image, to, from, err);
}

/* A module after all that it needs; in modules.dep the deepest need stands last. */
static int add_module(struct image *image, const struct pp_guest_kernel *kernel, const char *deps,
	const char *module, struct pp_buf *load, struct pp_buf *own_deps, struct pp_error *err)
{
	const char *start = dep_line(deps, module);
	size_t bytes = start ? strcspn(start, "\n") : 0;
	char *line, *end;
	int rc = 0;

	if (!start)
		return 0; /* built in, or this kernel has none: mounting will say so */
	line = strndup(start, bytes);
	if (!line)
		return pp_fail_os(err, errno, "cannot add module '%s'", module);
	pp_buf_addf(own_deps, "%s\n", line);
	while (!rc && (end = strrchr(line, ' '))) {
		char name[128];
		const char *slash = strrchr(end + 1, '/');

		rc = add_module_path(image, kernel, end + 1, load, err);
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(slash + 1, "."), slash + 1);
		if (!rc && dep_line(own_deps->data, name) == NULL)
			pp_buf_addf(own_deps, "%.*s\n", (int)strcspn(dep_line(deps, name), "\n"),
				dep_line(deps, name));
		*end = '\0';
	}
	line[strcspn(line, ":")] = '\0';
	if (!rc)
		rc = add_module_path(image, kernel, line, load, err);
	free(line);
	return rc;
}

/* Needed to find its drives and its network, loaded at once; and what a file system asks for by
 * name when it is mounted. */
static const char *const boot_modules[] = { "virtio_pci", "virtio_net", "nbd" };
static const struct {
	const char *tool, *modules[8];
} file_systems[] = {
	{ "mkfs.xfs", { "xfs" } },
	{ "mkfs.btrfs", { "btrfs", "xxhash_generic", "blake2b_generic", "sha256_generic" } },
};

static int add_modules(struct image *image, const struct pp_guest_kernel *kernel,
	struct pp_error *err)
{
	struct pp_buf deps, load, own_deps, alias;
	char path[8192], tool[4096];
	int rc;

	pp_buf_init(&deps, 16 << 20);
	pp_buf_init(&load, 1 << 20);
	pp_buf_init(&own_deps, 1 << 20);
	pp_buf_init(&alias, 1 << 20);
	snprintf(path, sizeof(path), "%s/lib/modules/%s/modules.dep", kernel->root, kernel->release);
	rc = pp_file_read(path, &deps, err);
	for (size_t i = 0; !rc && i < sizeof(boot_modules) / sizeof(boot_modules[0]); i++)
		rc = add_module(image, kernel, deps.data, boot_modules[i], &load, &own_deps, err);
	for (size_t i = 0; !rc && i < sizeof(file_systems) / sizeof(file_systems[0]); i++)
		for (int m = 0; !rc && file_systems[i].modules[m]; m++) {
			if (!find_program(file_systems[i].tool, tool, sizeof(tool)))
				break;
			rc = add_module(image, kernel, deps.data, file_systems[i].modules[m], NULL,
				&own_deps, err);
			if (!m)
				pp_buf_addf(&alias, "alias fs-%s %s\n", file_systems[i].modules[0],
					file_systems[i].modules[0]);
		}
	if (!rc) {
		add_text(image, &GUEST_MODULES[1], &load);
		snprintf(path, sizeof(path), "lib/modules/%s/modules.dep", kernel->release);
		add_text(image, path, &own_deps);
		snprintf(path, sizeof(path), "lib/modules/%s/modules.alias", kernel->release);
		add_text(image, path, &alias);
	}
	pp_buf_release(&deps);
	pp_buf_release(&load);
	pp_buf_release(&own_deps);
	pp_buf_release(&alias);
	return rc;
}

int pp_guest_image_build(struct pp_buf *archive, const struct pp_guest_kernel *kernel,
	const char *guest_tool, const char *dut, struct pp_error *err)
{
	static const char *const folders[] = { "dev", "proc", "sys", "tmp", "run", "mnt", "root",
		"etc" };
	static const char *const names[] = { "sbin/poweroff", "sbin/reboot", "sbin/smartctl",
		"sbin/plugpull-lab-cache" };
	static const char *const programs[] = { "mke2fs", "e2fsck", "blockdev", "dd", "mkfs.xfs",
		"xfs_repair", "mkfs.btrfs", "btrfs" };
	static const char *const e2fs[][2] = { { "sbin/mkfs.ext4", "mke2fs" },
		{ "sbin/fsck.ext4", "e2fsck" } };
	struct image image = { .archive = archive };
	int rc = 0;

	pp_buf_init(&image.names, 1 << 20);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (!have(&image, folders[i]))
			pp_cpio_dir(archive, folders[i]);
	pp_cpio_char_device(archive, "dev/console", 5, 1);
	rc = add_file(&image, "init", guest_tool, err);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		add_link(&image, names[i], "/init");
	for (size_t i = 0; !rc && i < sizeof(programs) / sizeof(programs[0]); i++)
		rc = add_program(&image, programs[i], err);
	for (size_t i = 0; i < sizeof(e2fs) / sizeof(e2fs[0]); i++)
		add_link(&image, e2fs[i][0], e2fs[i][1]);
	if (!rc && dut)
		rc = add_file(&image, "bin/plugpull-dut", dut, err);
	if (!rc)
		rc = add_modules(&image, kernel, err);
	if (!rc)
		rc = add_busybox(&image, err);
	if (!rc && (archive->failed || image.names.failed))
		rc = pp_fail_os(err, ENOMEM, "cannot build the initramfs");
	pp_buf_release(&image.names);
	return rc;
}
