// Starts the page. Chromium gives up every request that is under way when a network appears or goes, as the networks of
// jobs do, and a module that could not be had is not asked for again: then the page is loaded anew, a few times.
import("/assets/main.js").then(
  () => sessionStorage.removeItem("starts"),
  (error) => {
    const starts = Number(sessionStorage.getItem("starts") ?? 0) + 1;
    sessionStorage.setItem("starts", starts);
    if (starts <= 3) setTimeout(() => location.reload(), 300 * starts);
    else document.body.append(`The page cannot start: ${error.message}. Reload it.`);
  },
);
