import { chmod, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isDNS1123Subdomain } from '../../objects/names.ts';

/** The folders of claims: they outlive the Pods that use them, and several may use one. */
export class ClaimFolders {
  readonly #root: string;

  /** @param root the folder that they are in; it need not exist. */
  constructor(root: string) {
    this.#root = root;
  }

  /**
   * Makes a folder where there is none, for everybody to write to; one that is there keeps the permissions that Pods gave it.
   *
   * @throws {Error} for a name that leads elsewhere; the system's error.
   */
  async make(name: string): Promise<string> {
    const path = this.#pathOf(name);
    // Other users of the machine must not come to what Pods leave there, such as a program that runs as its owner.
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    if ((await mkdir(path, { recursive: true })) !== undefined) await chmod(path, 0o777);
    return path;
  }

  /** Removes a folder with its files. @throws the same. */
  async remove(name: string): Promise<void> {
    await rm(this.#pathOf(name), { recursive: true, force: true });
  }

  /** The handle of a volume, which its author may choose. */
  #pathOf(name: string): string {
    const [problem] = isDNS1123Subdomain(name);
    if (problem !== undefined) throw new Error(`volumeHandle "${name}": ${problem}`);
    return join(this.#root, name);
  }
}
