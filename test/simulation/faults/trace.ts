/** Hears what happens in a simulation, a line at a time; undefined: nobody listens. */
export type Trace = ((line: string) => unknown) | undefined;
