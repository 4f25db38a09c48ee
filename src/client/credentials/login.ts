/** The result of a login: a token, or a certificate with its key, in PEM. */
export interface Credential {
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Expiry in milliseconds since 1970; absent: it does not expire. */
  readonly expiresAt?: number;
}

/** Provides credentials that expire, and gets new ones when they have. */
export interface Login {
  /** @throws {Error} when there are none, with a message for the operator. */
  credential(): Promise<Credential>;
  /** Call when the server refused the last one. */
  forget(): void;
}

/**
 * Shortest use of a credential in milliseconds, against a server that refuses all of them and a plugin that returns
 * expired ones.
 */
const shortestUse = 10_000;

/** {@link Login} that caches a credential until it expires; concurrent callers share one request. */
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
      // The first caller gets a new one, for all.
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
    // True when the clock was set back.
    if (Math.abs(this.#now() - this.#obtainedAt) >= shortestUse) this.#current = undefined;
  }
}
