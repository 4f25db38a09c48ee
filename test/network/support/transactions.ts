import type { ExecOptions, Host } from '../../../src/host/host.ts';

/**
 * The host, which tells of every transaction in JSON that it is given for nft before nft gets it. A text as a whole is
 * none: the frame of a table, or the question whether nft can stay.
 */
export function tellingTransactions(host: Host, tell: () => void): Host {
  const observed = async function* (
    input: Exclude<ExecOptions['input'], string | undefined>,
  ): AsyncGenerator<string> {
    for await (const piece of input) {
      tell();
      yield piece;
    }
  };
  const exec: Host['exec'] = (program, args, options = {}) => {
    const { input } = options;
    return host.exec(
      program,
      args,
      typeof input === 'object' ? { ...options, input: observed(input) } : options,
    );
  };
  return { ...host, exec };
}
