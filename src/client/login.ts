/** What a login hands out: a token, or a certificate with its key, in PEM. */
export interface Credential {
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Milliseconds since 1970; absent: it does not run out. */
  readonly expiresAt?: number;
}

/** Hands out credentials that run out, and gets new ones when they did. */
export interface Login {
  /** @throws {Error} when none can be had, in words for a person. */
  credential(): Promise<Credential>;
  /** The server refused the last one. */
  forget(): void;
}

/** Milliseconds that a credential is used at least: a server may refuse whatever we bring, and a plugin may be late. */
const shortestUse = 10_000;

/** {@link Login} that keeps a credential while it lasts; all who ask at once share one answer. */
export class CachedLogin implements Login {
  readonly #obtain: () => Promise<Credential>;
  readonly #now: () => number;
  #current: Promise<Credential & { expiresAt: number }> | undefined;
  #obtainedAt = Number.NEGATIVE_INFINITY;

  /** @param now milliseconds since 1970. */
  constructor(obtain: () => Promise<Credential>, now: () => number) {
    this.#obtain = obtain;
    this.#now = now;
  }

  async credential(): Promise<Credential> {
    const current = this.#current;
    if (current !== undefined) {
      const known = await current;
      if (this.#now() < known.expiresAt) return known;
      // Whoever comes first gets a new one, for all.
      if (this.#current !== current) return this.credential();
    }
    const next = this.#obtain().then((credential) => {
      const { expiresAt = Number.POSITIVE_INFINITY } = credential;
      return { ...credential, expiresAt: Math.max(expiresAt, this.#now() + shortestUse) };
    });
    this.#current = next;
    this.#obtainedAt = this.#now();
    next.catch(() => {
      if (this.#current === next) this.#current = undefined;
    });
    return next;
  }

  forget(): void {
    // The clock may have been set back.
    if (Math.abs(this.#now() - this.#obtainedAt) >= shortestUse) this.#current = undefined;
  }
}
