import type { Host } from '../../../host/host.ts';

/** A kernel parameter of an interface, below `net/FAMILY/conf/NAME`. */
export type LinkSysctl = readonly [family: 'ipv4' | 'ipv6', name: string, value: string];

/** Settings of an interface that has other addresses too: setting its MAC address announces all addresses. */
export const sharedSysctls: readonly LinkSysctl[] = [
  ['ipv4', 'arp_notify', '1'],
  ['ipv6', 'ndisc_notify', '1'],
];

/** The kernel announces a new IPv6 address at once; whether it is free was asked before. */
const announcedAtOnce: LinkSysctl = ['ipv6', 'accept_dad', '0'];

/** The same where nothing else announces IPv6 addresses. */
export const arpingSysctls: readonly LinkSysctl[] = [...sharedSysctls, announcedAtOnce];

/** Settings of an interface of our own. */
export const ownSysctls: readonly LinkSysctl[] = [
  ...sharedSysctls,
  announcedAtOnce,
  ['ipv6', 'accept_ra', '0'],
  // Answers go out of the interface below.
  ['ipv4', 'rp_filter', '2'],
];

/** Sets kernel parameters of interfaces, and remembers what they were. */
export class LinkSysctls {
  readonly #host: Host;
  readonly #refused: (path: string, error: unknown) => void;
  /** By their path, the values before. */
  readonly #before = new Map<string, string>();

  /** @param refused is called for each that could not be set. */
  constructor(host: Host, refused: (path: string, error: unknown) => void) {
    this.#host = host;
    this.#refused = refused;
  }

  /** Sets what is there and was not set before: a kernel without IPv6 has half of them. */
  async set(link: string, sysctls: readonly LinkSysctl[]): Promise<void> {
    for (const [family, parameter, value] of sysctls) {
      const path = `net/${family}/conf/${link}/${parameter}`;
      if (this.#before.has(path)) continue;
      try {
        const before = await this.#host.sysctl.get(path);
        if (before === undefined) continue;
        await this.#host.sysctl.set(path, value);
        this.#before.set(path, before);
      } catch (error) {
        this.#refused(path, error);
      }
    }
  }

  /** Sets all back. */
  async restore(): Promise<void> {
    for (const [path, value] of this.#before) {
      try {
        await this.#host.sysctl.set(path, value);
      } catch (error) {
        this.#refused(path, error);
      }
    }
    this.#before.clear();
  }
}
