/** The build makes it of docs/troubleshooting.md: what its tables say of each word (hack/build-page.ts). */
declare module 'servicenet:reasons' {
  const texts: Readonly<Record<string, { readonly meaning: string; readonly whatToDo: string }>>;
  export default texts;
}
